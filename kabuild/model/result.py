"""Results: the outputs of an action, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any

from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.verdict import GateVerdict


@unique
class Outcome(Enum):
    """How an action ended.

    DONE says nothing about the candidate: its verdict does. INFRA is never scored and
    never cached: the machine failed, so nothing was judged.
    """

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    INFRA = "infra"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class OutputFile:
    """One file below ``out/``. Directories appear as their files."""

    path: str
    digest: Digest
    executable: bool = False


@dataclass(frozen=True)
class ActionResult:
    """The outputs of an action: REAPI's ``ActionResult``.

    ``files`` covers declared files and, path by path, declared directories; ``directories`` says
    which declared outputs are directories. ``seconds`` is the time of the run that produced this
    result, not of the lookup. ``hermetic`` is false if the machine refused namespaces; such a
    result is not shared.
    """

    exit_code: int
    files: tuple[OutputFile, ...] = ()
    stdout: Digest | None = None
    stderr: Digest | None = None
    seconds: float = field(default=0.0, compare=False)
    hermetic: bool = field(default=True, compare=False)
    directories: tuple[str, ...] = ()

    def file(self, path: str) -> OutputFile | None:
        """The output file at ``path``, if the action made it."""
        return next((file for file in self.files if file.path == path), None)

    def below(self, path: str) -> tuple[tuple[str, OutputFile], ...]:
        """The files of the output directory ``path``, by path relative to it."""
        prefix = f"{path}/"
        return tuple(
            (file.path.removeprefix(prefix), file)
            for file in self.files
            if file.path.startswith(prefix)
        )


@dataclass(frozen=True)
class Settled:
    """One action of one build, after its end.

    Attributes:
        key: the action's digest; None if its inputs were never made.
        cached: whether the result came from the cache.
        seconds: wall time that this build spent on it.
        verdict: for gates.
        facts: the action's own report; see ``Action.facts``.
        message: what went wrong; or that a gate is flaky, if several runs gave different verdicts.
        lacking: the output that a command did not make although it ended well. If a tool of ours
            ran foreign code, that code ended the process: ``sys.exit(0)`` is no error to Python.
        fault: the infrastructure failure, machine-readable, such as ``NO_DEVICE``.
        remote: whether a worker of a fleet ran it.
        stopped_by: the action that is the root cause why this one did not run.
    """

    label: Label
    outcome: Outcome
    key: Digest | None = None
    result: ActionResult | None = None
    cached: bool = False
    seconds: float = 0.0
    verdict: GateVerdict | None = None
    message: str = ""
    lacking: str = ""
    fault: str = ""
    stopped_by: Label | None = None
    remote: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False, hash=False)

    @property
    def account(self) -> str:
        """The message after the action's name, unless it already begins with that."""
        named = self.message.startswith((f"{self.label} ", f"{self.label}: "))
        return self.message if named or not self.message else f"{self.label}: {self.message}"
