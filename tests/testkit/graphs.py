"""Random action graphs, with what each action will come to, for property tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

from kabuild.base.errors import InfraError, Reason
from kabuild.execution.prepared import Prepared
from kabuild.execution.strategy import Execution
from kabuild.model.action import VERDICT_FILE, Action, Artifact, Literal, Output, Resources
from kabuild.model.graph import ActionGraph
from kabuild.model.result import Outcome
from kabuild.model.verdict import Verdict
from tests.testkit.actions import command
from tests.testkit.execution import Behaviour, ScriptedStrategy

_T = TypeVar("_T")

FATES = ("succeed", "succeed", "succeed", "FAIL", "REJECTED", "crash", "infra")


@dataclass(frozen=True)
class Plan:
    """A graph, and by label what happens to an action if it runs: one of FATES."""

    graph: ActionGraph
    fates: Mapping[str, str]

    def script(self, strategy: ScriptedStrategy) -> None:
        """Make ``strategy`` do what the plan says."""
        for label, fate in self.fates.items():
            strategy.behaviours[label] = behaviour(strategy, self.graph.actions[label], fate)

    def expected(self) -> dict[str, tuple[Outcome, Verdict | None]]:
        """How every action must settle in an undisturbed build that keeps going."""
        ends: dict[str, tuple[Outcome, Verdict | None]] = {}
        for label, action in self.graph.actions.items():
            ends[label] = self._expect(action, ends)
        return ends

    def _expect(
        self, action: Action, ends: Mapping[str, tuple[Outcome, Verdict | None]]
    ) -> tuple[Outcome, Verdict | None]:
        skipped = (Outcome.SKIPPED, Verdict.SKIPPED if action.gate else None)
        before = [ends[label] for label in action.dependencies()]
        if any(outcome is Outcome.INFRA for outcome, _ in before):
            return Outcome.INFRA, None
        if any(end in {(Outcome.FAILED, None), (Outcome.SKIPPED, None)} for end in before):
            return skipped
        required = [ends[str(label)][1] for label in action.requires]
        if any(verdict not in {None, Verdict.PASS} for verdict in required):
            return skipped
        needed = [i for _, i in action.inputs if isinstance(i, Output) and i.path != VERDICT_FILE]
        if any(ends[item.producer][0] is Outcome.SKIPPED for item in needed):
            return skipped
        fate = self.fates[str(action.label)]
        if fate == "infra" or (fate == "crash" and action.gate):
            return Outcome.INFRA, None
        if fate == "crash":
            return Outcome.FAILED, None
        if not action.gate:
            return Outcome.DONE, None
        return Outcome.DONE, Verdict.PASS if fate == "succeed" else Verdict[fate]


def behaviour(strategy: ScriptedStrategy, action: Action, fate: str) -> Behaviour:
    """What one fate means for one action."""
    if fate == "infra":

        def break_down(_: Prepared) -> Execution:
            raise InfraError(Reason.SANDBOX_FAILED, "the machine is on fire")

        return break_down
    if fate == "crash":
        return strategy.fail(stderr=b"it did not work\n")
    if action.gate and fate != "succeed":
        return strategy.judge(Verdict[fate], "WRONG_RESULT")
    return strategy.succeed


@st.composite
def plans(draw: st.DrawFn, *, max_actions: int = 9) -> Plan:
    """Graphs with gates, chains, diamonds, shared devices, twins, and every fate."""
    actions: list[Action] = []
    fates: dict[str, str] = {}
    for number in range(draw(st.integers(1, max_actions))):
        is_gate, twin, needed, required, cpus, device, mnemonic, fate = draw(_ACTIONS)
        inputs: dict[str, Artifact] = {"name": Literal(b"twin" if twin else str(number).encode())}
        for which, one in needed if actions else ():
            dependency = _chosen(actions, which)
            path = _chosen(dependency.outputs, one)
            inputs[f"{dependency.label.name}/{path}"] = dependency.output(path)
        gates = [action for action in actions if action.gate]
        action = command(
            f"a{number}",
            "run",
            inputs=inputs,
            outputs=("result", VERDICT_FILE) if is_gate else ("result",),
            gate="compile" if is_gate else "",
            requires=[_chosen(gates, which) for which in required] if gates else (),
            resources=Resources(cpus, device),
            mnemonic=mnemonic,
        )
        actions.append(action)
        judged = fate in {"FAIL", "REJECTED"}
        fates[str(action.label)] = "succeed" if twin or (judged and not is_gate) else fate
    return Plan(ActionGraph.of(actions), fates)


_CHOICES = st.integers(0, 99)
# One strategy that knows of no graph: to make others for each draw costs more than the builds.
_ACTIONS = st.tuples(
    st.booleans(),
    st.sampled_from([True, False, False, False]),
    st.lists(st.tuples(_CHOICES, _CHOICES), max_size=3),
    st.lists(_CHOICES, max_size=2),
    st.integers(0, 3),
    st.sampled_from(["", "", "gpu"]),
    st.sampled_from(["Run", "Compile"]),
    st.sampled_from(FATES),
)


def _chosen(options: Sequence[_T], number: int) -> _T:
    return options[number % len(options)]
