"""Builds of random graphs, checked while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kabuild.execution import CachedExecutor, Inputs
from kabuild.model.event import ActionSettled, ActionStarted, BuildFinished, BuildStarted, Warned
from kabuild.model.result import Outcome
from kabuild.model.verdict import Verdict
from kabuild.scheduler import BuildResult, Scheduler
from kabuild.scheduler.workers import Run
from kabuild.store.merkle import FileNode
from tests.testkit.clock import FakeClock
from tests.testkit.events import RecordingSink
from tests.testkit.execution import MemoryLeases, ScriptedStrategy, ScriptedWorkers
from tests.testkit.graphs import Plan
from tests.testkit.index import NoIndex
from tests.testkit.store import MemoryActionCache, MemoryCas


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
        self.keys: dict[str, str] = {}
        plan.script(self.strategy)

    def forget(self, label: str) -> None:
        """Remove the cached result of one action, as an eviction would."""
        key = self.keys.get(label)
        if key:
            self.cache.entries.pop(key, None)

    def build(
        self,
        choices: list[int],
        *,
        jobs: int = 2,
        keep_going: bool = True,
        stop_after: int | None = None,
        lose: Callable[[int, list[str]], None] = lambda _, __: None,
    ) -> tuple[BuildResult, RecordingSink]:
        """One build; run number ``stop_after`` sets the stop as it ends.

        ``lose`` is called before each run ends, to damage the store: with a drawn number and
        the hashes of what running actions are about to read.
        """
        self.strategy.ran.clear()
        sink, leases, stop = RecordingSink(), MemoryLeases(), threading.Event()
        left = list(choices)

        def choose(count: int) -> int:
            if stop_after is not None and len(self.strategy.ran) >= stop_after:
                stop.set()
            drawn = left.pop() if left else 0
            lose(drawn, [node.digest.hash for run in workers.running for node in _reads(run)])
            return drawn % count

        if stop_after == 0:
            stop.set()
        workers = CheckedWorkers(jobs, choose)
        executor = CachedExecutor(Inputs({}, NoIndex()), self.cas, self.cache, self.strategy)
        scheduler = Scheduler(
            executor,
            sink,
            leases,
            jobs=jobs,
            keep_going=keep_going,
            stop=stop,
            clock=FakeClock(),
            workers=workers,
        )
        result = scheduler.run(self.plan.graph)
        assert not leases.held, "a lease was not given back"
        self._check_events(sink, result)
        self.keys = {label: s.key.hash for label, s in result.settled.items() if s.key}
        return result, sink

    def _check_events(self, sink: RecordingSink, result: BuildResult) -> None:
        """Every action settles after those that it depends on, and once unless it was lost."""
        rewound = bool(sink.of(Warned))
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
                assert rewound or label not in settled, "settled twice"
                settled[label] = event.settled
        assert settled == dict(result.settled)
        assert set(self.strategy.ran) <= started


def _reads(run: Run) -> list[FileNode]:
    return [node for path, node in run.prepared.root.walk() if path != "name"]


def ends(result: BuildResult) -> dict[str, tuple[Outcome, Verdict | None]]:
    """How each action ended, in the terms of ``Plan.expected``."""
    return {
        label: (settled.outcome, settled.verdict.verdict if settled.verdict else None)
        for label, settled in result.settled.items()
    }
