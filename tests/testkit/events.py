"""An EventSink that remembers."""

from __future__ import annotations

from typing import TypeVar

from kabuild.model.event import Event

E = TypeVar("E")


class RecordingSink:
    """Keeps every event in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]
