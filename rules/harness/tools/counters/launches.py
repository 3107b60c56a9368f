"""Launches as a profiler has counted them, in terms that no vendor has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from base.program import CandidateFault

WAITS = "wait_"
"""The prefix of figures that say for what warps wait: cycles for each instruction."""


MOST_LAUNCHES = 64
"""The most launches of a call that are counted, as each is repeated for each group of counters."""

_MOST_NAME = 300
_HIDDEN = re.compile(r"(?:<unnamed>|\(anonymous namespace\)|\{anonymous\})::")
_NUMBER = re.compile(r"\d{1,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?", re.ASCII)
_MOST = 1e18
"""More than any device counts in the time of a call: sums of such numbers stay finite."""


def number(text: str) -> float | None:
    """The number that a profiler has written, with commas or without; None for anything else.

    Nothing that a device counts is negative.
    """
    plain = text.replace(",", "")
    value = float(plain) if _NUMBER.fullmatch(plain) else None
    return value if value is not None and value <= _MOST else None


def plain_name(symbol: str) -> str:
    """The name of a kernel without its parameters, and its type: both profilers write C++."""
    name = _HIDDEN.sub("", "".join(c if c.isprintable() else "?" for c in symbol))
    return name.removeprefix("void ").partition("(")[0][:_MOST_NAME]


@dataclass(frozen=True)
class Launch:
    """One launch.

    Attributes:
        kernel: its name, with arguments of templates.
        grid, block: numbers of blocks, and of threads of a block.
        figures: by the names of ``docs/results.md``; without those that were not counted.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    figures: Mapping[str, float] = field(hash=False)

    def to_json(self) -> dict[str, Any]:
        """As in ``counters.json``."""
        return {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "figures": {name: round(value, 4) for name, value in sorted(self.figures.items())},
        }


@dataclass(frozen=True)
class Profiled:
    """One call.

    Attributes:
        launches: in their order; without those beyond the most that are counted.
        whole: whether these are all launches of the call.
    """

    launches: Sequence[Launch] = ()
    whole: bool = False
    fault: CandidateFault | None = None


class Profiler(Protocol):
    """A vendor's profiler, in the candidate's sandbox."""

    name: str
    """For people."""

    def profile(self, folder: Path, seconds: Callable[[], float]) -> Profiled:
        """Count what one call does, as the files in ``folder`` say.

        ``seconds`` returns how much time is left, and raises CandidateFault if none is. Raises
        MachineFault if the counters are missing, or may not be read.
        """
