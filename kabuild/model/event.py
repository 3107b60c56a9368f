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
    """The action was not cached: its command runs now."""

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
    """A warning for the user; the build goes on."""

    message: str


@dataclass(frozen=True)
class BuildFinished:
    """Every action has settled, or the build has stopped."""

    interrupted: bool
    at: float


Event = BuildStarted | ActionStarted | ActionExecuting | ActionSettled | Warned | BuildFinished


class EventSink(Protocol):
    """A listener. ``emit`` may be called from any thread and must not block."""

    def emit(self, event: Event) -> None:
        """Receive one event."""
        ...
