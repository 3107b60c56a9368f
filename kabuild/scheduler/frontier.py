"""Which actions wait for which others, and which are next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum, auto

from kabuild.model.graph import ActionGraph


class State(Enum):
    """The state of an action.

    WAITING for dependencies; READY to be looked up; QUEUED to run; PARKED because an equal
    action is queued or running; RUNNING; SETTLED.
    """

    WAITING = auto()
    READY = auto()
    QUEUED = auto()
    PARKED = auto()
    RUNNING = auto()
    SETTLED = auto()


class Frontier:
    """The state of every action of one build, kept consistent with its dependencies.

    An action is READY, QUEUED or RUNNING only when all its dependencies are SETTLED. A
    settled action can be reopened when its output was lost; its dependents wait again.
    """

    def __init__(self, graph: ActionGraph) -> None:
        self._blockers = {label: set(a.dependencies()) for label, a in graph.actions.items()}
        self._dependents: dict[str, list[str]] = {label: [] for label in graph.actions}
        for label, blockers in self._blockers.items():
            for blocker in blockers:
                self._dependents[blocker].append(label)
        self._states = dict.fromkeys(graph.actions, State.WAITING)
        self._ready: deque[str] = deque()
        self._unsettled = len(self._states)
        for label, blockers in self._blockers.items():
            if not blockers:
                self._make_ready(label)

    def state(self, label: str) -> State:
        """The state of one action."""
        return self._states[label]

    def is_done(self) -> bool:
        """Whether every action has settled."""
        return self._unsettled == 0

    def pop_ready(self) -> str | None:
        """An action whose dependencies have all settled; the caller moves it to its next state."""
        while self._ready:
            label = self._ready.popleft()
            if self._states[label] is State.READY:
                return label
        return None

    def take_ready(self) -> list[str]:
        """All actions whose dependencies have settled; the caller moves each on."""
        taken = []
        while (label := self.pop_ready()) is not None:
            taken.append(label)
        return taken

    def move(self, label: str, state: State) -> None:
        """Record that an action was queued, parked or started."""
        self._states[label] = state

    def requeue(self, label: str) -> None:
        """Make an action ready again, once nothing blocks it."""
        self._states[label] = State.WAITING
        if not self._blockers[label]:
            self._make_ready(label)

    def settle(self, label: str) -> None:
        """Record the end of an action; dependents that wait for nothing else become ready."""
        self._states[label] = State.SETTLED
        self._unsettled -= 1
        for dependent in self._dependents[label]:
            blockers = self._blockers[dependent]
            blockers.discard(label)
            if not blockers and self._states[dependent] is State.WAITING:
                self._make_ready(dependent)

    def reopen(self, producers: Iterable[str], consumer: str) -> list[str]:
        """Run ``producers`` again before ``consumer``, which was running.

        Returns the queued actions that were withdrawn because they wait again, too.
        """
        withdrawn: list[str] = []
        self._states[consumer] = State.WAITING
        for producer in producers:
            self._blockers[consumer].add(producer)
            if self._states[producer] is not State.SETTLED:
                continue
            self._unsettled += 1
            self._make_ready(producer)
            for dependent in self._dependents[producer]:
                state = self._states[dependent]
                if state in {State.RUNNING, State.SETTLED}:
                    continue
                self._blockers[dependent].add(producer)
                if state in {State.READY, State.QUEUED}:
                    self._states[dependent] = State.WAITING
                    withdrawn += [dependent] if state is State.QUEUED else []
        return withdrawn

    def _make_ready(self, label: str) -> None:
        self._states[label] = State.READY
        self._ready.append(label)
