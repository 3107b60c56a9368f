"""The queue of actions that only wait for slots and devices."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from kabuild.execution.prepared import Prepared
from kabuild.model.action import Resources
from kabuild.scheduler.order import Urgency
from kabuild.scheduler.workers import Run

Needs = tuple[Resources, bool]
"""What an action occupies, and whether it does so elsewhere."""

Entry = tuple[Urgency, int, str]
"""Urgency, position in the graph, label."""


class RunQueue:
    """Prepared actions that wait for slots and devices, the most urgent first.

    Actions that need the same resources form one line: if its first does not fit, none does. So a
    turn costs one attempt for each line plus the started actions, however many wait.
    """

    def __init__(self) -> None:
        # No line is empty, and its first action is queued. Others in it may be withdrawn, or stand
        # further ahead, too, since they have become more urgent.
        self._lines: dict[Needs, list[Entry]] = {}
        self._prepared: dict[str, Prepared] = {}

    def __contains__(self, label: str) -> bool:
        return label in self._prepared

    def hasten(self, label: str, urgency: Urgency, place: int) -> None:
        """Make a queued action more urgent."""
        self.push(self._prepared[label], urgency, place)

    def push(self, prepared: Prepared, urgency: Urgency, place: int) -> None:
        """Add an action that is not queued."""
        label = str(prepared.action.label)
        self._prepared[label] = prepared
        line = self._lines.setdefault(_needs(prepared), [])
        heapq.heappush(line, (urgency, place, label))

    def withdraw(self, label: str) -> Prepared:
        """Remove one action."""
        prepared = self._prepared.pop(label)
        needs = _needs(prepared)
        line = self._lines[needs]
        while line and line[0][2] not in self._prepared:
            heapq.heappop(line)
        if not line:
            del self._lines[needs]
        return prepared

    def drain(self, lease: str | None = None) -> list[Prepared]:
        """Remove all actions, or all that need ``lease`` here, the most urgent first."""
        waiting = sorted(
            entry
            for (needs, elsewhere), line in self._lines.items()
            if lease is None or (needs.lease == lease and not elsewhere)
            for entry in line
        )
        labels = dict.fromkeys(label for _, _, label in waiting if label in self._prepared)
        return [self.withdraw(label) for label in labels]

    def start(self, begin: Callable[[str, Prepared], Run | None]) -> Iterator[Run]:
        """Remove each action for which ``begin`` returns a run, until it declines every line."""
        fitting = dict(self._lines)
        while fitting:
            needs, line = min(fitting.items(), key=_urgency_of_first)
            label = line[0][2]
            run = begin(label, self._prepared[label])
            if run is None:
                del fitting[needs]
                continue
            self.withdraw(label)
            if not line:
                del fitting[needs]
            yield run


def _needs(prepared: Prepared) -> Needs:
    return prepared.action.resources, prepared.remote


def _urgency_of_first(item: tuple[Needs, list[Entry]]) -> Entry:
    return item[1][0]
