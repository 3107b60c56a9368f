"""Any graph, any order of completion: the promises of the scheduler hold."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from kabuild.execution import CachedExecutor, Inputs
from kabuild.model.event import ActionSettled, ActionStarted, BuildFinished, BuildStarted
from kabuild.model.result import Outcome
from kabuild.scheduler import BuildResult, Scheduler
from kabuild.scheduler.workers import Run
from tests.testkit.clock import FakeClock
from tests.testkit.events import RecordingSink
from tests.testkit.execution import MemoryLeases, ScriptedStrategy, ScriptedWorkers
from tests.testkit.graphs import Plan, plans
from tests.testkit.index import NoIndex
from tests.testkit.store import MemoryActionCache, MemoryCas

CHOICES = st.lists(st.integers(0, 99), max_size=20)


class CheckedWorkers(ScriptedWorkers):
    """Workers that check, at every start, that no CPU slot is used twice."""

    def __init__(self, jobs: int, choose: Callable[[int], int]) -> None:
        super().__init__(choose)
        self._jobs = jobs

    def start(self, run: Run, *rest: object) -> None:
        super().start(run, *rest)  # type: ignore[arg-type]
        taken = [slot for running in self.running for slot in running.slots]
        assert len(taken) == len(set(taken)), "a slot was handed out twice"
        assert set(taken) <= set(range(self._jobs))
        wanted = run.prepared.action.resources.cpus
        assert len(run.slots) == (min(wanted, self._jobs) or self._jobs)


class World:
    """One store, with any number of builds on it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.cas = MemoryCas()
        self.cache = MemoryActionCache(self.cas)
        self.strategy = ScriptedStrategy(self.cas)
        plan.script(self.strategy)

    def build(
        self,
        choices: list[int],
        *,
        jobs: int = 2,
        keep_going: bool = True,
        stop_after: int | None = None,
    ) -> tuple[BuildResult, RecordingSink]:
        """One build; run number ``stop_after`` sets the stop as it ends."""
        self.strategy.ran.clear()
        sink, leases, stop = RecordingSink(), MemoryLeases(), threading.Event()
        left = list(choices)

        def choose(count: int) -> int:
            if stop_after is not None and len(self.strategy.ran) >= stop_after:
                stop.set()
            return left.pop() % count if left else 0

        if stop_after == 0:
            stop.set()
        executor = CachedExecutor(Inputs({}, NoIndex()), self.cas, self.cache, self.strategy)
        scheduler = Scheduler(
            executor,
            sink,
            leases,
            jobs=jobs,
            keep_going=keep_going,
            stop=stop,
            clock=FakeClock(),
            workers=CheckedWorkers(jobs, choose),
        )
        result = scheduler.run(self.plan.graph)
        assert not leases.held, "a lease was not given back"
        self._check_events(sink, result)
        return result, sink

    def _check_events(self, sink: RecordingSink, result: BuildResult) -> None:
        """Every action settles once, after those that it depends on."""
        assert isinstance(sink.events[0], BuildStarted)
        assert isinstance(sink.events[-1], BuildFinished)
        settled: dict[str, object] = {}
        started: set[str] = set()
        for event in sink.events:
            if isinstance(event, ActionStarted):
                needs = self.plan.graph.actions[str(event.label)].dependencies()
                assert all(label in settled for label in needs), "started too early"
                started.add(str(event.label))
            elif isinstance(event, ActionSettled):
                label = str(event.settled.label)
                assert label not in settled, "settled twice"
                settled[label] = event.settled
        assert settled == dict(result.settled)
        assert set(self.strategy.ran) <= started


@given(plan=plans(), jobs=st.integers(1, 4), choices=CHOICES)
@settings(max_examples=700, deadline=None)
def test_every_action_settles_as_the_rules_say(plan: Plan, jobs: int, choices: list[int]) -> None:
    world = World(plan)

    result, _ = world.build(choices, jobs=jobs)

    ends = {
        label: (settled.outcome, settled.verdict.verdict if settled.verdict else None)
        for label, settled in result.settled.items()
    }
    assert ends == plan.expected()
    assert not result.interrupted
    for label, settled in result.settled.items():
        gate = plan.graph.actions[label].gate
        if settled.outcome is Outcome.SKIPPED or settled.stopped_by:
            assert settled.message
            assert str(settled.stopped_by) in plan.graph
        if gate and settled.outcome in {Outcome.DONE, Outcome.SKIPPED}:
            assert settled.result, "a gate's verdict can be read, even when it was skipped"
            assert settled.result.file("verdict.json")


@given(plan=plans(), jobs=st.integers(1, 4), choices=CHOICES)
@settings(max_examples=200, deadline=None)
def test_equal_actions_run_once(plan: Plan, jobs: int, choices: list[int]) -> None:
    result, _ = (world := World(plan)).build(choices, jobs=jobs)

    keys = [result.settled[label].key for label in world.strategy.ran]
    done = [
        result.settled[label].key
        for label in world.strategy.ran
        if result.settled[label].outcome is Outcome.DONE
    ]
    assert len(done) == len(set(done))
    assert set(done) <= set(keys)


@given(plan=plans(), choices=CHOICES)
@settings(max_examples=200, deadline=None)
def test_a_second_build_runs_only_what_may_not_be_cached(plan: Plan, choices: list[int]) -> None:
    world = World(plan)
    first, _ = world.build(choices)

    second, sink = world.build(choices)

    for label in world.strategy.ran:
        assert first.settled[label].outcome in {Outcome.FAILED, Outcome.INFRA}
    for label, settled in second.settled.items():
        assert settled.outcome is first.settled[label].outcome
        assert settled.verdict == first.settled[label].verdict
        assert settled.cached == (settled.outcome is Outcome.DONE)
    assert {str(e.label) for e in sink.of(ActionStarted)} == set(world.strategy.ran)


@given(
    plan=plans(),
    jobs=st.integers(1, 4),
    choices=CHOICES,
    stop_after=st.integers(0, 6),
)
@settings(max_examples=400, deadline=None)
def test_interrupted_anywhere_finished_work_is_kept(
    plan: Plan, jobs: int, choices: list[int], stop_after: int
) -> None:
    world = World(plan)

    result, _ = world.build(choices, jobs=jobs, stop_after=stop_after)

    cancelled = [s for s in result.settled.values() if s.outcome is Outcome.CANCELLED]
    assert result.interrupted == bool(cancelled)
    finished = {
        label for label in world.strategy.ran if result.settled[label].outcome is Outcome.DONE
    }
    again, _ = world.build(choices, jobs=jobs)
    assert not finished & set(world.strategy.ran), "finished work ran again"
    ends = {
        label: (settled.outcome, settled.verdict.verdict if settled.verdict else None)
        for label, settled in again.settled.items()
    }
    assert ends == plan.expected()


@given(plan=plans(), jobs=st.integers(1, 4), choices=CHOICES)
@settings(max_examples=300, deadline=None)
def test_without_keep_going_nothing_starts_after_a_failure(
    plan: Plan, jobs: int, choices: list[int]
) -> None:
    world = World(plan)

    result, sink = world.build(choices, jobs=jobs, keep_going=False)

    failed = False
    for event in sink.events:
        if isinstance(event, ActionStarted):
            assert not failed, f"{event.label} started after a failure"
        elif isinstance(event, ActionSettled):
            fate = plan.fates[str(event.settled.label)]
            ran = str(event.settled.label) in world.strategy.ran
            failed = failed or (ran and fate != "succeed")
    assert not result.interrupted
    expected = plan.expected()
    for label, settled in result.settled.items():
        assert settled.outcome in {expected[label][0], Outcome.CANCELLED}
