"""The result of analysis: the action graph, and the actions of a request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kabuild.base.errors import AnalysisError, Reason
from kabuild.model.action import Action
from kabuild.model.gate import Gate, Role
from kabuild.model.graph import ActionGraph
from kabuild.model.label import Label
from kabuild.model.target import Target

Judging = tuple[Gate, Label]
"""A gate and its action."""


@dataclass(frozen=True)
class AnalyzedTarget:
    """One target after its rule was called.

    Attributes:
        target: with the labels of this platform filled in.
        actions: all that the rule declared.
        gates: its gates, in the rule's order.
    """

    target: Target
    actions: tuple[Action, ...] = ()
    gates: tuple[Judging, ...] = ()


@dataclass(frozen=True)
class Analysis:
    """The graph of everything that may run, and how labels lead into it.

    Attributes:
        graph: the actions of all analysed targets.
        requested: the labels that were asked for, in order.
        targets: every analysed target by label, dependencies before dependents.
        owners: the target of each requested label, which may name a sub-target.
    """

    graph: ActionGraph
    requested: tuple[Label, ...]
    targets: Mapping[Label, AnalyzedTarget] = field(hash=False)
    owners: Mapping[Label, Label] = field(hash=False)

    def gates(self, label: Label, names: Collection[str] | None = None) -> tuple[Judging, ...]:
        """The gates that ``test`` runs for a requested label; none if it has no gates.

        A target means its gates among ``names``, or its default gates; a gate means itself, if it
        is among ``names``. Both mean all trials, unless the label has a trial's number.
        """
        owner = self.targets[self.owners[label]]
        whole = label.in_trial(1) == owner.target.label
        return tuple(
            (gate, part)
            for gate, part in owner.gates
            if label.covers(label.in_trial(part.trial) if whole else part)
            and (gate.name in names if names is not None else gate.usual or not whole)
        )

    def declared(self) -> Mapping[Label, Gate]:
        """The gates by the label of their actions."""
        return {part: gate for done in self.targets.values() for gate, part in done.gates}

    def builds(self, label: Label) -> tuple[Label, ...]:
        """The actions that ``build`` runs for a requested label.

        A sub-target is its own action. A target means the action with its label, else the score
        gate, else all its actions. Some targets have none, such as agents. Raises AnalysisError for
        a sub-target that the rule did not declare here.
        """
        owner = self.targets[self.owners[label]]
        declared = tuple(action.label for action in owner.actions)
        if covered := tuple(action for action in declared if label.covers(action)):
            return covered
        if label.in_trial(1) != owner.target.label:
            raise AnalysisError(
                Reason.UNKNOWN_TARGET,
                f"{owner.target.label.short} has no {label} with these flags",
                position=owner.target.position,
                hint=f"it has: {', '.join(map(str, declared)) or 'no actions'}",
            )
        score = tuple(part for gate, part in owner.gates if gate.role is Role.SCORE)
        return tuple(p for p in score or declared if label.covers(label.in_trial(p.trial)))
