"""The one way from a request to a summary; the API and all commands that judge stand on it.

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
"""Gives, for the time of one build, the event that stops it."""


@dataclass(frozen=True)
class Builder:
    """Plans requests and carries them out.

    Attributes:
        store: where results are found and kept.
        sink: hears of everything while it happens.
        stopping: what stops a build.
        spawner: keeps interpreters warm between builds; without one, each build has its own.
    """

    store: Store
    sink: EventSink
    stopping: Stopping
    clock: Clock = field(default_factory=SystemClock)
    spawner: Spawner | None = None

    def plan(self, request: Request) -> Plan:
        """What will run, if no cache knows it. Raises KabuildError."""
        return plan(request, load(request), self.store)

    def plan_changed(
        self, request: Request, recalled: Recalled | None
    ) -> tuple[Plan, Recalled | None]:
        """The plan of what ``recalled`` does not answer, and what of it still counts."""
        return plan_changed(request, recalled, self.store)

    def execute(self, request: Request, planned: Plan) -> Summary:
        """Run what no cache knows, and say what came of everything."""
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
        """Plan and execute. Raises KabuildError for a request that is wrong."""
        return self.execute(request, self.plan(request))

    def foresee(self, request: Request, planned: Plan) -> dict[str, Forecast]:
        """What ``execute`` would do with every action that was asked for; nothing runs."""
        return foresee(request, planned, self.store)
