"""One call of the program, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Stream = Literal["kept", "closed", "full", "broken"]
"""Where output goes: to us, nowhere (a closed descriptor), /dev/full, a pipe without a reader."""


@dataclass(frozen=True)
class Call:
    """``kabuild ARGV`` in a directory, with what a shell gives to it.

    Attributes:
        cwd: absolute; ``gone`` removes it once the program is in it.
        env: all of the environment. Values may hold surrogates that stand for bytes.
        limits: of ``setrlimit``, by the number of the resource.
        user: what it runs as; 0 is whoever started the fuzzer.
        seconds: after which it is killed, and has failed.
        kill: a signal, and the seconds after which it is sent.
        group: whether all of its process group get the signal.
        again: whether it is sent twice.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    gone: bool = False
    out: Stream = "kept"
    err: Stream = "kept"
    limits: Mapping[int, int] = field(default_factory=dict)
    user: int = 0
    seconds: float = 20.0
    kill: tuple[int, float] | None = None
    group: bool = False
    again: bool = False

    def message(self) -> dict[str, Any]:
        """What the first process is sent."""
        return {
            "argv": self.argv,
            "cwd": self.cwd,
            "env": dict(self.env),
            "gone": self.gone,
            "out": self.out,
            "err": self.err,
            "limits": list(self.limits.items()),
            "user": self.user,
            "seconds": self.seconds,
            "kill": self.kill,
            "group": self.group,
            "again": self.again,
        }


@dataclass(frozen=True)
class Ended:
    """How a call ended.

    Attributes:
        code: the exit code; a signal is negative.
        hung: whether it was killed because its time was up.
        memory: bytes that it held at most, its children left out.
    """

    code: int
    out: bytes
    err: bytes
    seconds: float = 0.0
    memory: int = 0
    hung: bool = False

    @property
    def text(self) -> str:
        """Both streams, for people and patterns."""
        return (self.out + b"\n" + self.err).decode(errors="replace")
