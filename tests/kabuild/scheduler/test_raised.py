"""Whatever is raised inside the scheduler's loop ends the build at once, and is what comes out."""

from __future__ import annotations

import threading
import time

import pytest

from kabuild.execution import CachedExecutor, Inputs
from kabuild.execution.prepared import Prepared
from kabuild.execution.strategy import Execution
from kabuild.model.action import Resources
from kabuild.model.event import (
    ActionExecuting,
    ActionSettled,
    ActionStarted,
    BuildFinished,
    BuildStarted,
    Event,
    EventSink,
)
from kabuild.model.graph import ActionGraph
from kabuild.model.verdict import Verdict
from kabuild.report.progress import Fan
from kabuild.scheduler import Scheduler
from tests.testkit.actions import command
from tests.testkit.events import RecordingSink
from tests.testkit.execution import MemoryLeases, ScriptedStrategy
from tests.testkit.index import NoIndex
from tests.testkit.store import MemoryActionCache, MemoryCas

SECONDS = 60.0


class BrokenError(Exception):
    """What a sink raises here."""


class Breaks:
    """A sink that raises at one kind of event."""

    def __init__(self, kind: type[Event]) -> None:
        self.kind = kind

    def emit(self, event: Event) -> None:
        if isinstance(event, self.kind):
            raise BrokenError


def run_with(
    sink: EventSink, leases: MemoryLeases, told: threading.Event, ended: list[bool], *, heeds: bool
) -> None:
    """Two actions on real threads, one of which never ends by itself, but when it is ``told``.

    Where it ``heeds`` a stop, that ends it, too. ``ended`` has whether it was told so.
    """
    cas = MemoryCas()
    strategy = ScriptedStrategy(cas)
    stop = threading.Event()

    def hang(prepared: Prepared) -> Execution:
        ended.append((stop if heeds else told).wait(SECONDS))
        return strategy.judge(Verdict.PASS)(prepared)

    strategy.behaviours["//t:endless"] = hang
    executor = CachedExecutor(Inputs({}, NoIndex()), cas, MemoryActionCache(cas), strategy)
    graph = ActionGraph.of(
        [command("endless", resources=Resources(lease="device")), command("short")]
    )
    Scheduler(executor, sink, leases, jobs=2, stop=stop).run(graph)


@pytest.mark.parametrize("heeds", [True, False])
@pytest.mark.parametrize("kind", [BuildStarted, ActionStarted, ActionExecuting, ActionSettled])
def test_what_a_sink_raises_ends_the_build(kind: type[Event], heeds: bool) -> None:
    leases, heard = MemoryLeases(), RecordingSink()
    told, ended = threading.Event(), list[bool]()

    with pytest.raises(BrokenError):
        run_with(Fan(Breaks(kind), heard), leases, told, ended, heeds=heeds)

    assert False not in ended  # nobody has waited until an action gave up
    assert heeds or not ended
    told.set()
    if kind is not BuildStarted:
        assert isinstance(heard.events[-1], BuildFinished)  # displays are taken down
    deadline = time.monotonic() + SECONDS
    while leases.held and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not leases.held  # also of a run that did not end when it was told to
