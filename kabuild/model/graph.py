"""The static action graph: everything that may run, before anything does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kabuild.base.errors import AnalysisError, Reason
from kabuild.model.action import Action


@dataclass(frozen=True)
class ActionGraph:
    """Actions by label, each after its dependencies."""

    actions: Mapping[str, Action] = field(default_factory=dict)

    @classmethod
    def of(cls, actions: Iterable[Action]) -> ActionGraph:
        """Order ``actions`` by dependency.

        Raises AnalysisError: CYCLE with the path, UNKNOWN_TARGET for a missing producer.
        """
        by_label = {str(action.label): action for action in actions}
        ordered: dict[str, Action] = {}
        state: dict[str, bool] = {}
        for root in by_label:
            _visit(root, by_label, state, ordered)
        return cls(ordered)

    def closure(self, roots: Iterable[str]) -> ActionGraph:
        """The part of the graph that ``roots`` need, in the same order."""
        needed: set[str] = set()
        stack = list(roots)
        while stack:
            label = stack.pop()
            if label not in needed:
                needed.add(label)
                stack.extend(self.actions[label].dependencies())
        return ActionGraph({k: v for k, v in self.actions.items() if k in needed})

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions.values())

    def __len__(self) -> int:
        return len(self.actions)

    def __contains__(self, label: object) -> bool:
        return str(label) in self.actions


def _visit(
    root: str, by_label: Mapping[str, Action], state: dict[str, bool], ordered: dict[str, Action]
) -> None:
    """Depth-first, without recursion: a graph may be deeper than Python's stack."""
    stack = [(root, iter(by_label[root].dependencies()))]
    if root in state:
        return
    state[root] = False
    while stack:
        label, rest = stack[-1]
        for dependency in rest:
            if dependency not in by_label:
                raise AnalysisError(
                    Reason.UNKNOWN_TARGET, f"{label} needs {dependency}, which no rule makes"
                )
            if dependency not in state:
                state[dependency] = False
                stack.append((dependency, iter(by_label[dependency].dependencies())))
                break
            if not state[dependency]:
                path = [name for name, _ in stack]
                loop = [*path[path.index(dependency) :], dependency]
                raise AnalysisError(
                    Reason.CYCLE, "actions depend on each other: " + " -> ".join(loop)
                )
        else:
            stack.pop()
            state[label] = True
            ordered[label] = by_label[label]
