"""Events: facts about a running build. Reports are folds over them; nothing else prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kabuild.model.label import Label
from kabuild.model.result import Settled


@dataclass(frozen=True)
class BuildStarted:
    """The graph is known; ``total`` actions will settle."""

    total: int
    platform: str
    at: float


@dataclass(frozen=True)
class ActionStarted:
    """An action left the queue. ``slot`` is the worker that runs it."""

    label: Label
    mnemonic: str
    slot: int
    at: float


@dataclass(frozen=True)
class ActionExecuting:
    """No cache knew the action: its command runs now."""

    label: Label
    at: float


@dataclass(frozen=True)
class ActionSettled:
    """An action ended, one way or another."""

    settled: Settled
    mnemonic: str
    at: float


@dataclass(frozen=True)
class Warned:
    """Something that the user should know and that stops nothing."""

    message: str


@dataclass(frozen=True)
class BuildFinished:
    """Everything that could settle has settled."""

    interrupted: bool
    at: float


Event = BuildStarted | ActionStarted | ActionExecuting | ActionSettled | Warned | BuildFinished


class EventSink(Protocol):
    """Whoever listens. ``emit`` may be called from any thread and must not block."""

    def emit(self, event: Event) -> None:
        """Take note of one fact."""
        ...
