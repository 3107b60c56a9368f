"""Which of the actions that could start goes first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kabuild.model.graph import ActionGraph
from kabuild.scheduler.plan import History, priorities

Urgency = tuple[int, float]
"""Smaller is sooner: whether a task only begins to use a device, and less the seconds behind it."""


class Order:
    """The order of one build's actions.

    The longest chain goes first. But what a task needs of a device comes together: actions that
    wait for it take turns, in whichever order, and so the first verdicts come after the first
    tasks, not after all of them.
    """

    def __init__(self, graph: ActionGraph, history: History) -> None:
        self._graph = graph
        self._history = history
        self._places = {label: index for index, label in enumerate(graph.actions)}
        self._behind: dict[str, float] = {}
        self._begun: set[str] = set()
        self._on_devices: dict[str, list[str]] = defaultdict(list)  # by package
        for label, action in graph.actions.items():
            if action.resources.lease:
                self._on_devices[action.label.package].append(label)

    def of(self, label: str) -> tuple[Urgency, int]:
        """The urgency of an action, and its place among equally urgent ones."""
        if not self._behind:
            self._behind = priorities(self._graph, self._history.estimates(self._graph))
        action = self._graph.actions[label]
        goes_on = bool(action.resources.lease) and action.label.package in self._begun
        return (0 if goes_on else 1, -self._behind[label]), self._places[label]

    def begin(self, label: str) -> Sequence[str]:
        """Note that an action has got a device; returns those that are more urgent now."""
        package = self._graph.actions[label].label.package
        if package in self._begun:
            return ()
        self._begun.add(package)
        return self._on_devices[package]
