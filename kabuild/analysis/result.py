"""What analysis comes to: the action graph, and which actions a request means."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kabuild.base.errors import AnalysisError, Reason
from kabuild.model.action import Action
from kabuild.model.graph import ActionGraph
from kabuild.model.label import Label
from kabuild.model.target import Target

SCORE = "score"


@dataclass(frozen=True)
class AnalyzedTarget:
    """One target after its rule was called.

    Attributes:
        target: with the labels of this platform filled in.
        actions: all that the rule declared.
        gates: those that judge, in the order of the rule.
        on_request: further ones, which a target stands for only where they are named.
    """

    target: Target
    actions: tuple[Action, ...] = ()
    gates: tuple[Action, ...] = ()
    on_request: tuple[Action, ...] = ()


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

    def gates(self, label: Label, named: Collection[str] = ()) -> tuple[Label, ...]:
        """The gates that a requested label means in ``test``; none where it is no test.

        A target stands for all its gates, and for those on request that are ``named``; a gate
        stands for itself. Both stand for all trials, unless they have the number of one.
        """
        owner = self.targets[self.owners[label]]
        if label.in_trial(1) == owner.target.label:
            named_ones = (gate for gate in owner.on_request if gate.gate in named)
            gates = (gate.label for gate in (*owner.gates, *named_ones))
            return tuple(g for g in gates if label.covers(label.in_trial(g.trial)))
        return tuple(g.label for g in (*owner.gates, *owner.on_request) if label.covers(g.label))

    def builds(self, label: Label) -> tuple[Label, ...]:
        """The actions that a requested label means in ``build``.

        A sub-target is its own action. A target is the action that bears its label, else
        its ``.score``, else all its actions; a target such as an agent has none. Raises
        AnalysisError for a sub-target that the rule did not declare here.
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
        score = tuple(gate.label for gate in owner.gates if gate.gate == SCORE)
        return tuple(p for p in score or declared if label.covers(label.in_trial(p.trial)))
