"""A gate and a plain action may be one command: a kernel judged against itself."""

from __future__ import annotations

import threading

import pytest

from kabuild.execution import CachedExecutor, Inputs
from kabuild.execution.strategy import Execution
from kabuild.model.action import VERDICT_FILE, Action
from kabuild.model.graph import ActionGraph
from kabuild.model.result import ActionResult, Outcome, OutputFile
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.scheduler import BuildResult, History, Scheduler
from tests.testkit.actions import command, gate
from tests.testkit.clock import FakeClock
from tests.testkit.events import RecordingSink
from tests.testkit.execution import MemoryLeases, ScriptedStrategy, ScriptedWorkers
from tests.testkit.index import NoIndex
from tests.testkit.store import MemoryActionCache, MemoryCas

PLAIN = command("own.compile", "cc", inputs={}, outputs=(VERDICT_FILE, "k.so"))
GATE = gate("k.compile", "cc", inputs={}, outputs=("k.so",))


class World:
    """A store in memory whose compiler says one ``verdict`` for both."""

    def __init__(self, verdict: Verdict) -> None:
        cas = MemoryCas()
        self.strategy = ScriptedStrategy(cas)
        text = GateVerdict("compile", verdict, "" if verdict is Verdict.PASS else "BAD").to_json()
        files = [OutputFile(VERDICT_FILE, cas.put(text))]
        if verdict is Verdict.PASS:
            files.append(OutputFile("k.so", cas.put(b"code")))
        execution = Execution(ActionResult(0, tuple(files)))
        for label in ("//t:own.compile", "//t:k.compile"):
            self.strategy.behaviours[label] = lambda _: execution
        self.executor = CachedExecutor(
            Inputs({}, NoIndex()), cas, MemoryActionCache(cas), self.strategy
        )

    def build(self, *actions: Action) -> BuildResult:
        return Scheduler(
            self.executor,
            RecordingSink(),
            MemoryLeases(),
            jobs=2,
            keep_going=True,
            stop=threading.Event(),
            history=History(),
            clock=FakeClock(),
            workers=ScriptedWorkers(),
        ).run(ActionGraph.of(actions), [])


@pytest.mark.parametrize("actions", [(PLAIN, GATE), (GATE, PLAIN)])
def test_a_gate_has_a_verdict_whoever_ran(actions: tuple[Action, Action]) -> None:
    world = World(Verdict.PASS)

    settled = world.build(*actions).settled

    assert len(world.strategy.ran) == 1
    verdict = settled["//t:k.compile"].verdict
    assert verdict is not None
    assert verdict.verdict is Verdict.PASS
    assert settled["//t:own.compile"].outcome is Outcome.DONE
    assert settled["//t:own.compile"].verdict is None


@pytest.mark.parametrize("actions", [(PLAIN, GATE), (GATE, PLAIN)])
def test_what_a_gate_says_no_to_is_a_failure_elsewhere(actions: tuple[Action, Action]) -> None:
    world = World(Verdict.FAIL)

    for _ in range(2):
        settled = world.build(*actions).settled
        verdict = settled["//t:k.compile"].verdict
        assert verdict is not None
        assert verdict.reason == "BAD"
        assert settled["//t:own.compile"].outcome is Outcome.FAILED
        assert settled["//t:own.compile"].message == "BAD"
