"""The scheduler: runs an action graph, and owns all of a build's mutable state.

One thread makes all decisions; workers only run actions. Each turn of its loop looks up ready
actions, settles those that need no run, starts what fits, and waits for one run to end.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kabuild.base import threads
from kabuild.base.clock import Clock, SystemClock
from kabuild.base.errors import InternalError, Reason
from kabuild.model.event import BuildFinished, BuildStarted, EventSink
from kabuild.model.graph import ActionGraph
from kabuild.model.result import Outcome, Settled
from kabuild.scheduler.build import Build
from kabuild.scheduler.leasing import Leasing, Pool
from kabuild.scheduler.plan import History
from kabuild.scheduler.resources import Leases
from kabuild.scheduler.workers import Executor, Run, ThreadWorkers, Workers

LEASE_POLL = 0.1
"""Seconds between attempts to lease a device that another process uses."""

PATIENCE = 0.5
"""Seconds for runs to end after an exception."""


@dataclass(frozen=True)
class BuildResult:
    """How a build ended: each action by label, in the order of the graph.

    ``seconds`` is wall time. ``interrupted`` means that some actions were cancelled because
    the user stopped the build.
    """

    settled: Mapping[str, Settled]
    interrupted: bool
    seconds: float


class Scheduler:
    """Runs action graphs.

    Args:
        jobs: CPU slots; an action with ``cpus == 0`` takes all of them.
        remote_jobs: actions that run elsewhere at a time.
        keep_going: whether independent actions still start after something failed.
        stop: set it, from any thread, to end the build: running actions are killed, finished work
            is kept.
        pools: the devices that satisfy a lease, by its name.
    """

    def __init__(
        self,
        executor: Executor,
        sink: EventSink,
        leases: Leases,
        *,
        jobs: int,
        remote_jobs: int = 1,
        keep_going: bool = True,
        stop: threading.Event | None = None,
        history: History | None = None,
        clock: Clock | None = None,
        workers: Workers | None = None,
        pools: Mapping[str, Pool] | None = None,
    ) -> None:
        self._executor = executor
        self._sink = sink
        self._leases = leases
        self._jobs = jobs
        self._remote_jobs = remote_jobs
        self._keep_going = keep_going
        self._stop = stop or threading.Event()
        self._history = history or History()
        self._clock = clock or SystemClock()
        self._workers = workers or ThreadWorkers()
        self._pools = pools or {}

    def run(
        self, graph: ActionGraph, requested: Iterable[object] = (), *, platform: str = ""
    ) -> BuildResult:
        """Settle ``requested`` (labels; none means all) and everything that they need.

        ``platform`` is the one in events; by default the first action's. Problems of an action are
        in its Settled. Only bugs of kabuild itself are raised, after running actions have been
        stopped.
        """
        roots = [str(label) for label in requested]
        graph = graph.closure(roots) if roots else graph
        started = self._clock.monotonic()
        told = platform or next((str(action.platform) for action in graph), "")
        self._sink.emit(BuildStarted(len(graph), told, self._clock.wall()))
        build = Build(
            graph,
            self._executor,
            self._sink,
            Leasing(self._leases, self._pools, self._sink, self._clock),
            jobs=self._jobs,
            remote_jobs=self._remote_jobs,
            keep_going=self._keep_going,
            stop=self._stop,
            history=self._history,
            clock=self._clock,
        )
        try:
            self._loop(build)
        except BaseException:
            self._give_up(build)
            raise
        cancelled = any(s.outcome is Outcome.CANCELLED for s in build.settled.values())
        interrupted = self._stop.is_set() and cancelled
        self._history.save()
        self._sink.emit(BuildFinished(interrupted, self._clock.wall()))
        settled = {label: build.settled[label] for label in graph.actions}
        return BuildResult(settled, interrupted, self._clock.monotonic() - started)

    def _loop(self, build: Build) -> None:
        build.advance()
        while not build.is_done():
            for run in build.startable():
                self._start(build, run)
            if not build.running and not build.waits_for_lease():
                raise InternalError(Reason.INTERNAL, "nothing runs and nothing can start")
            ended = self._workers.wait(LEASE_POLL if build.waits_for_lease() else None)
            if ended:
                build.finish(ended)
            build.advance()

    def _give_up(self, build: Build) -> None:
        """Stop running actions without a long wait, so that an exception is reported soon.

        An action that takes longer keeps its device until its end.
        """
        self._stop.set()
        with contextlib.suppress(Exception):  # the exception may come from the sink
            self._sink.emit(BuildFinished(interrupted=True, at=self._clock.wall()))
        self._history.save()
        deadline = time.monotonic() + PATIENCE
        while build.running and (left := deadline - time.monotonic()) > 0:
            if run := self._workers.wait(left):
                build.let_go(run)
        if build.running:
            threads.start(threading.Thread(target=self._let_go_later, args=(build,), daemon=True))

    def _let_go_later(self, build: Build) -> None:
        while build.running and (run := self._workers.wait(None)):
            build.let_go(run)

    def _start(self, build: Build, run: Run) -> None:
        try:
            self._workers.start(run, self._executor, self._stop, self._clock)
        except BaseException:
            build.let_go(run)  # no worker reports its end
            raise
