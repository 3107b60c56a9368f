"""Run the actions of a bundle again, without any cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Event

from kabuild.bundle.candidates import CANDIDATE
from kabuild.bundle.claims import BASELINE, gate_of
from kabuild.bundle.compare import Comparison, Word, compare
from kabuild.bundle.environment_diff import EnvironmentDifference
from kabuild.bundle.restore import Restored
from kabuild.bundle.verdicts import VERDICTS
from kabuild.execution.outcome import conclude
from kabuild.execution.prepared import Prepared
from kabuild.execution.strategy import Execution, Strategy
from kabuild.model.action import VERDICT_FILE, Action
from kabuild.model.event import EventSink
from kabuild.model.graph import ActionGraph
from kabuild.model.label import Label
from kabuild.model.result import ActionResult, Outcome, Settled
from kabuild.scheduler import Leases, Pool, Scheduler
from kabuild.store.cas import Cas


class _Rerun:
    """Settles each action by running it; all inputs are known."""

    def __init__(self, restored: Mapping[Label, Prepared], strategy: Strategy, cas: Cas) -> None:
        self._restored = restored
        self._strategy = strategy
        self._cas = cas
        self.others: dict[Label, str] = {}
        """By label, the gate that an action turned out to be, if it is another one."""

    def anticipate(self, actions: Iterable[Action], produced: Mapping[str, ActionResult]) -> None:
        """Nothing can be had beforehand."""

    def lookup(self, action: Action, produced: Mapping[str, ActionResult]) -> Prepared:
        """Nothing is cached."""
        del produced
        return self._restored[action.label]

    def execute(self, prepared: Prepared, cancel: Event) -> Settled:
        """Run it; only its outputs are stored."""
        execution = self._strategy.run(prepared, cancel)
        result = replace(execution.result, hermetic=self._strategy.hermetic())
        verdict = result.file(VERDICT_FILE)
        gate = gate_of(self._cas.get(verdict.digest)) if verdict else ""
        if prepared.action.gate and gate not in {"", prepared.action.gate}:
            self.others[prepared.action.label] = gate
        return conclude(prepared, Execution(result, execution.fault), self._cas)

    def skip(self, action: Action, because: str) -> Settled:
        """The result of an action that did not run because the replay was stopped."""
        return Settled(action.label, Outcome.SKIPPED, message=because)


def replay(
    actions: Sequence[Restored],
    strategy: Strategy,
    cas: Cas,
    sink: EventSink,
    leases: Leases,
    *,
    jobs: int,
    stop: Event,
    pools: Mapping[str, Pool],
) -> list[Comparison]:
    """Run each action again and compare; in the order given.

    Raises StoreError. An action that ended with an infrastructure failure is not comparable.
    """
    ready = {item.prepared.action.label: item.prepared for item in actions}
    executor = _Rerun(ready, strategy, cas)
    scheduler = Scheduler(executor, sink, leases, jobs=jobs, stop=stop, pools=pools)
    graph = ActionGraph.of(prepared.action for prepared in ready.values())
    ended = scheduler.run(graph).settled
    return [_compared(item, ended.get(item.record.label), executor.others, cas) for item in actions]


def _compared(
    item: Restored, settled: Settled | None, others: Mapping[Label, str], cas: Cas
) -> Comparison:
    if other := others.get(item.prepared.action.label):
        return Comparison(item.record, Word.DIFFERENT, f"its action is gate {other!r:.60}")
    if settled is None or settled.result is None:
        why = settled.message if settled else "it was not run"
        return Comparison(item.record, Word.NOT_COMPARABLE, why.splitlines()[0] if why else "")
    obstacle = item.obstacle
    if not settled.result.hermetic and not (obstacle and obstacle.in_key):
        obstacle = EnvironmentDifference(
            "it ran without a sandbox", ("kabuild doctor says what a sandbox needs",)
        )
    inputs = item.prepared.root.directories
    derived = VERDICTS.rstrip("/") in inputs and not inputs.keys() & {CANDIDATE, BASELINE}
    return compare(item.record, settled.result, obstacle, cas.get, derived=derived)
