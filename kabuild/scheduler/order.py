"""Which of the actions that could start goes first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kabuild.model.graph import ActionGraph
from kabuild.scheduler.plan import History, priorities

Urgency = tuple[int, float]
"""Smaller is sooner: whether the task has not yet had a device, and less the seconds behind it."""


class Order:
    """The order of one build's actions.

    The longest chain goes first. But once a task has had a device, it goes on before others begin:
    what waits for a device takes turns on it anyway, and so verdicts and scores come task by task,
    not after the baselines of all tasks. A build that is interrupted has finished some of them.
    """

    def __init__(self, graph: ActionGraph, history: History) -> None:
        self._graph = graph
        self._history = history
        self._places = {label: index for index, label in enumerate(graph.actions)}
        self._behind: dict[str, float] = {}
        self._begun: set[str] = set()
        self._packages: dict[str, list[str]] = defaultdict(list)
        for label, action in graph.actions.items():
            self._packages[action.label.package].append(label)

    def of(self, label: str) -> tuple[Urgency, int]:
        """The urgency of an action, and its place among equally urgent ones."""
        if not self._behind:
            self._behind = priorities(self._graph, self._history.estimates(self._graph))
        goes_on = self._graph.actions[label].label.package in self._begun
        return (0 if goes_on else 1, -self._behind[label]), self._places[label]

    def begin(self, label: str) -> Sequence[str]:
        """Note that an action has got a device; returns those that are more urgent now."""
        package = self._graph.actions[label].label.package
        if package in self._begun:
            return ()
        self._begun.add(package)
        return self._packages[package]
