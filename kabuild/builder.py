"""The one way from a request to a summary, for the API and all commands that judge.

builder = Builder(store, sink, stopping)
summary = builder.run(request)                      # load, plan, execute

planned = builder.plan(request)                     # or step by step
summary = builder.execute(request, planned)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from kabuild.base.clock import Clock, SystemClock
from kabuild.execution.forecast import Forecast
from kabuild.incremental.recall import Recalled
from kabuild.incremental.split_request import plan_changed
from kabuild.loading.request import Request
from kabuild.model.event import EventSink
from kabuild.pipeline import Plan, Summary, execute, foresee, load, plan
from kabuild.sandbox import Spawner
from kabuild.store import Store

Stopping = Callable[[], AbstractContextManager[threading.Event]]
"""Provides the event that stops a build, for its duration."""


@dataclass(frozen=True)
class Builder:
    """Plans requests and carries them out.

    Attributes:
        store: where results are found and kept.
        sink: receives all events.
        stopping: provides the event that stops a build.
        spawner: keeps interpreters warm between builds; without one, each build has its own.
    """

    store: Store
    sink: EventSink
    stopping: Stopping
    clock: Clock = field(default_factory=SystemClock)
    spawner: Spawner | None = None

    def plan(self, request: Request) -> Plan:
        """Plan what has to run if nothing is cached. Raises KabuildError."""
        return plan(request, load(request), self.store)

    def plan_changed(
        self, request: Request, recalled: Recalled | None
    ) -> tuple[Plan, Recalled | None]:
        """Plan what ``recalled`` does not answer; also, what of it is still valid."""
        return plan_changed(request, recalled, self.store)

    def execute(self, request: Request, planned: Plan) -> Summary:
        """Run what is not cached; returns the results of everything. Raises StoreError."""
        self.store.renew()
        with self.stopping() as stop:
            return execute(
                request,
                planned,
                self.store,
                self.sink,
                stop=stop,
                clock=self.clock,
                spawner=self.spawner,
            )

    def run(self, request: Request) -> Summary:
        """Plan and execute. Raises KabuildError for an invalid request."""
        return self.execute(request, self.plan(request))

    def foresee(self, request: Request, planned: Plan) -> dict[str, Forecast]:
        """What ``execute`` would do with every requested action; nothing runs."""
        return foresee(request, planned, self.store)
