"""Adapters: code for one agent's command line, where a definition is not enough.

An adapter is a module ``adapters/NAME.py``, chosen by ``adapter = "NAME"`` in BUILD.toml, or a file
``NAME.py`` among the agent's own ``files``, which comes first. It runs inside the agent action's
sandbox, outside of the agent's own one, and needs the standard library only. All that it may
define::

    def prepare(setup: Setup) -> None         files in ``setup.home`` that the command line needs
    def meter() -> Meter                      reads usage while the agent runs, for its budgets def
    read(captured: Captured) -> Report    transcript, usage and state, once it has ended

``read`` is required. Its input was written by the agent, which is hostile: a file may be missing,
huge, a link, or not JSON; ``read_text`` handles the first three. An event may be malformed; a
``Sieve`` skips it, and keeps the others. Secrets need no care: all outputs of the action are
redacted after ``read``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum, unique
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

MOST_BYTES = 32 << 20
"""The most bytes of a file that an agent left; the rest is ignored."""

UNREADABLE = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError),
)
"""The exceptions of reading malformed values."""

_MOST_USED = 1e18
_Event = TypeVar("_Event")
_Read = TypeVar("_Read")


@unique
class State(Enum):
    """How an agent ended. Its editable files are judged in every case but the last.

    FINISHED by itself; TIMED_OUT after its wall time; BUDGET when its turns, tokens or money, by
    its own account, are used up; FAILED: it crashed or says so. UNAVAILABLE is not a result and is
    never cached: it was not logged in, its model could not be reached, or its quota was used up.
    """

    FINISHED = "finished"
    TIMED_OUT = "timed_out"
    BUDGET = "budget"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Usage:
    """The cost of a run, according to the agent. None means unknown, and exceeds no budget.

    ``input_tokens`` counts all tokens that were sent; ``cached_tokens`` are those among them
    that a cache of the provider knew.
    """

    turns: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    dollars: float | None = None

    @property
    def tokens(self) -> int | None:
        """Sent and received together."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def plausible(self) -> Usage:
        """The usage, with None instead of impossible values."""
        return Usage(**{name: number(value) for name, value in asdict(self).items()})


@dataclass(frozen=True)
class Setup:
    """What an adapter may prepare before the start.

    ``home`` and ``workspace`` are host paths of the agent's directories, which it sees as
    ``agent_home`` and ``agent_workspace``. ``variables`` are the placeholders of the
    definition, by name (see ``definition.py``).
    """

    home: Path
    workspace: Path
    agent_home: str
    agent_workspace: str
    model: str
    variables: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True)
class Captured:
    """The remains of a run, whose processes are all dead.

    ``stdout`` and ``stderr`` keep their first and last parts, with a line about what was omitted.
    ``exit_code`` is None if the agent was killed; 128 + N after signal N. ``state`` is what kabuild
    observed: TIMED_OUT or BUDGET if it ended the run itself, else FINISHED or FAILED by the exit
    code.
    """

    stdout: bytes
    stderr: bytes
    exit_code: int | None
    state: State
    seconds: float
    home: Path
    workspace: Path


@dataclass(frozen=True)
class Report:
    """An adapter's report on a run.

    ``transcript`` is what was said and done, in order, one JSON object an entry: ``role``
    (``system``, ``user``, ``assistant``, ``tool``) and ``text`` at least, where there are such.
    ``message`` is one line for people if the state is not FINISHED. ``figures`` are further figures
    of the agent, as JSON. ``skipped`` counts the events that could not be read.
    """

    state: State
    usage: Usage = Usage()
    transcript: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    message: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict, hash=False)
    skipped: int = 0


class Meter(Protocol):
    """Follows a run by its output, so that a budget ends it in time."""

    def feed(self, line: bytes) -> Usage | None:
        """The usage so far, after another line of stdout; None if nothing changed."""


class Adapter(Protocol):
    """An adapter with defaults for its optional parts."""

    def prepare(self, setup: Setup) -> None:
        """Prepare the files of the command line. Raises OSError."""

    def meter(self) -> Meter:
        """A meter for one run."""

    def read(self, captured: Captured) -> Report:
        """The report on one run."""


class _Deaf:
    """The meter of an adapter without one."""

    def feed(self, line: bytes) -> Usage | None:  # noqa: ARG002 - the interface's
        return None


class TurnCounter:
    """The meter for a command line that reports no turns: counts events.

    One turn beyond the budget ends the run.
    """

    def __init__(self, is_turn: Callable[[Mapping[str, Any]], bool]) -> None:
        self._is_turn = is_turn
        self._turns = 1

    def feed(self, line: bytes) -> Usage | None:
        """The turns so far."""
        if not self._is_turn(json_object(line)):
            return None
        self._turns += 1
        return Usage(turns=self._turns)


class Sieve:
    """Reads the events of one run, and skips malformed ones.

    Another version of the agent may print events differently: a malformed one is only skipped, and
    counted once in ``skipped``.
    """

    def __init__(self) -> None:
        self._odd: dict[int, Any] = {}

    @property
    def skipped(self) -> int:
        """How many events could not be read so far."""
        return len(self._odd)

    def each(
        self, events: Iterable[_Event], read: Callable[[_Event], Iterable[_Read]]
    ) -> list[_Read]:
        """The results of ``read`` for all readable events."""
        found: list[_Read] = []
        for event in events:
            found += self.one(event, lambda event: list(read(event)), [])
        return found

    def one(self, event: _Event, read: Callable[[_Event], _Read], otherwise: _Read) -> _Read:
        """The result of ``read`` for one event; ``otherwise`` if it is malformed."""
        try:
            return read(event)
        except UNREADABLE:
            self._odd[id(event)] = event  # keeps its id from being reused
            return otherwise


@dataclass(frozen=True)
class _Module:
    """A module as an Adapter."""

    module: Any

    def prepare(self, setup: Setup) -> None:
        if hasattr(self.module, "prepare"):
            self.module.prepare(setup)

    def meter(self) -> Meter:
        return cast("Meter", getattr(self.module, "meter", _Deaf)())

    def read(self, captured: Captured) -> Report:
        return cast("Callable[[Captured], Report]", self.module.read)(captured)


def load(name: str, files: Path | None = None) -> Adapter:
    """The adapter ``NAME.py`` among the agent's own ``files``, or else ``adapters/NAME.py``.

    Raises ModuleNotFoundError.
    """
    own = files / f"{name}.py" if files else None
    if own is None or not own.is_file():
        return _Module(importlib.import_module(f"adapters.{name}"))
    spec = importlib.util.spec_from_file_location(name, own)
    assert spec is not None, "it is a Python file"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look it up there
    spec.loader.exec_module(module)
    return _Module(module)


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The beginning of a file that an agent left; empty if there is none. Follows no links."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return ""
    with open(fd, "rb") as file:
        return file.read(most).decode(errors="replace")


def json_object(line: bytes | str) -> dict[str, Any]:
    """The JSON object on a line; empty if there is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def json_objects(lines: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of all lines; other lines are skipped."""
    for line in lines.splitlines():
        if line.startswith(b"{") and (value := json_object(line)):
            yield value


def entry(role: str, text: Any, **more: Any) -> Mapping[str, Any]:
    """An entry of a transcript. Raises TypeError if ``text`` is not a string."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.50} is not a string")
    return {"role": role, "text": text, **more}


def text_of(content: Any) -> Any:
    """The text of a message, which may be in parts, or missing."""
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return "" if content is None else content


def number(value: Any) -> Any:
    """``value`` if it is a plausible amount; else None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= _MOST_USED else None


def last_line(text: bytes) -> str:
    """The last line that is not blank, for a message."""
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
