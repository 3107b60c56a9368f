"""The scheduler in named situations: order, leases, skips, rewinds, interruptions, mistakes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kabuild.base.errors import InfraError, Interrupted, Reason, StoreError
from kabuild.execution import CachedExecutor, CachePolicy, Inputs
from kabuild.execution.prepared import Prepared
from kabuild.execution.strategy import Execution
from kabuild.model.action import Action, Resources, Source
from kabuild.model.event import ActionSettled, ActionStarted, BuildFinished, Warned
from kabuild.model.graph import ActionGraph
from kabuild.model.result import Outcome
from kabuild.model.verdict import Verdict
from kabuild.scheduler import BuildResult, History, Scheduler
from kabuild.scheduler.workers import Run
from tests.testkit.actions import command, gate
from tests.testkit.clock import FakeClock
from tests.testkit.events import RecordingSink
from tests.testkit.execution import MemoryLeases, ScriptedStrategy, ScriptedWorkers
from tests.testkit.index import NoIndex
from tests.testkit.store import MemoryActionCache, MemoryCas


class World:
    """A store in memory, and schedulers on it."""

    def __init__(self, root: Path = Path("/nowhere")) -> None:
        self.cas = MemoryCas()
        self.cache = MemoryActionCache(self.cas)
        self.strategy = ScriptedStrategy(self.cas)
        self.sink = RecordingSink()
        self.leases = MemoryLeases()
        self.clock = FakeClock()
        self.stop = threading.Event()
        self.history = History()
        self.root = root

    def build(
        self,
        *actions: Action,
        jobs: int = 2,
        keep_going: bool = True,
        policy: CachePolicy | None = None,
        workers: ScriptedWorkers | None = None,
        requested: tuple[Action, ...] = (),
    ) -> BuildResult:
        self.strategy.ran.clear()
        self.sink.events.clear()
        inputs = Inputs({"workspace": self.root}, NoIndex())
        return Scheduler(
            CachedExecutor(inputs, self.cas, self.cache, self.strategy, policy),
            self.sink,
            self.leases,
            jobs=jobs,
            keep_going=keep_going,
            stop=self.stop,
            history=self.history,
            clock=self.clock,
            workers=workers or ScriptedWorkers(),
        ).run(ActionGraph.of(actions), [action.label for action in requested])


@pytest.fixture
def world() -> World:
    return World()


def pipeline() -> tuple[Action, Action, Action, Action]:
    """compile -> correctness -> perf, and a score that reads all three verdicts."""
    compile_ = gate("k.compile", outputs=("k.so",))
    binary = {"k.so": compile_.output("k.so")}
    correctness = gate("k.correctness", inputs=binary, requires=(compile_,))
    perf = gate("k.perf", inputs=binary, requires=(compile_, correctness))
    verdicts = {
        f"verdicts/{a.gate}.json": a.output("verdict.json") for a in (compile_, correctness)
    }
    verdicts["verdicts/perf.json"] = perf.output("verdict.json")
    return compile_, correctness, perf, gate("k.score", inputs=verdicts)


def outcomes(result: BuildResult) -> dict[str, str]:
    """Last part of each label -> verdict, or outcome where there is none."""
    return {
        label.rpartition(".")[2]: s.verdict.verdict.value if s.verdict else s.outcome.value
        for label, s in result.settled.items()
    }


def test_a_failed_gate_skips_those_that_require_it_and_is_scored(world: World) -> None:
    world.strategy.behaviours["//t:k.compile"] = world.strategy.judge(Verdict.FAIL, "COMPILE_ERROR")

    result = world.build(*pipeline())

    assert outcomes(result) == {
        "compile": "FAIL",
        "correctness": "SKIPPED",
        "perf": "SKIPPED",
        "score": "PASS",
    }
    assert world.strategy.ran == ["//t:k.compile", "//t:k.score"]
    perf = result.settled["//t:k.perf"]
    assert perf.verdict
    assert (perf.verdict.reason, perf.verdict.summary) == ("EARLIER_GATE", "compile: FAIL")
    assert str(perf.stopped_by) == "//t:k.compile"


def test_a_machine_failure_leaves_the_rest_unjudged_and_names_the_first_cause(
    world: World,
) -> None:
    def break_down(_: Prepared) -> Execution:
        raise InfraError(Reason.SANDBOX_FAILED, "no more processes", hint="reboot")

    world.strategy.behaviours["//t:k.correctness"] = break_down

    result = world.build(*pipeline())

    assert outcomes(result) == {
        "compile": "PASS",
        "correctness": "infra",
        "perf": "infra",
        "score": "infra",
    }
    score = result.settled["//t:k.score"]
    assert score.message == "//t:k.correctness: no more processes"
    assert str(score.stopped_by) == "//t:k.correctness"
    assert "reboot" in result.settled["//t:k.correctness"].message


def test_a_missing_output_of_a_gate_that_did_not_pass_skips(world: World) -> None:
    """Also where the rule forgot to require the gate."""
    made = gate("k.compile", outputs=("k.so",))
    user = gate("k.perf", inputs={"k.so": made.output("k.so")})

    def fail_without_output(prepared: Prepared) -> Execution:
        execution = world.strategy.judge(Verdict.FAIL)(prepared)
        files = tuple(f for f in execution.result.files if f.path != "k.so")
        return Execution(type(execution.result)(0, files))

    world.strategy.behaviours["//t:k.compile"] = fail_without_output

    assert outcomes(world.build(made, user)) == {"compile": "FAIL", "perf": "SKIPPED"}


def test_a_failed_build_step_skips_dependents(world: World) -> None:
    runtime = command("runtime", outputs=("lib.so",))
    other = command("other", inputs={"lib.so": runtime.output("lib.so")})
    world.strategy.behaviours["//t:runtime"] = world.strategy.fail(2, b"line 1\nno such header\n")

    result = world.build(runtime, other)

    assert result.settled["//t:runtime"].outcome is Outcome.FAILED
    assert result.settled["//t:runtime"].message == "exit code 2\n| line 1\n| no such header"
    assert result.settled["//t:other"].outcome is Outcome.SKIPPED
    assert result.settled["//t:other"].message == "//t:runtime: exit code 2"


def test_a_missing_source_fails_its_action_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    lost = command("lost", inputs={"a": Source("absent.hip")})

    result = world.build(lost, command("fine"))

    assert result.settled["//t:lost"].outcome is Outcome.FAILED
    assert "no file 'absent.hip' in the workspace" in result.settled["//t:lost"].message
    assert result.settled["//t:fine"].outcome is Outcome.DONE


def test_an_action_that_wants_all_slots_runs_alone(world: World) -> None:
    workers = ScriptedWorkers()
    alone = command("alone", resources=Resources(cpus=0))

    world.build(alone, *(command(f"c{n}") for n in range(5)), jobs=3, workers=workers)

    assert workers.most_running == 3
    starts = [str(event.label) for event in world.sink.of(ActionStarted)]
    at = world.sink.events.index(
        next(e for e in world.sink.of(ActionStarted) if str(e.label) == "//t:alone")
    )
    before = world.sink.events[:at]
    started = sum(isinstance(event, ActionStarted) for event in before)
    settled = sum(isinstance(event, ActionSettled) for event in before)
    assert started == settled, "others were running"
    assert len(starts) == 6


def test_waiting_for_another_process_names_it_after_a_second(world: World) -> None:
    world.leases.taken.add("gpu0")
    timeouts: list[float | None] = []

    class Waiting(ScriptedWorkers):
        def wait(self, timeout: float | None) -> object:  # type: ignore[override]
            timeouts.append(timeout)
            world.clock.advance(0.4)
            if len(timeouts) == 5:
                world.leases.taken.clear()
            return super().wait(timeout)

    perf = command("perf", resources=Resources(lease="gpu0"))
    result = world.build(perf, workers=Waiting())

    assert result.settled["//t:perf"].outcome is Outcome.DONE
    assert [event.message for event in world.sink.of(Warned)] == [
        "waiting for 'gpu0', which process 123 is using"
    ]
    assert None not in timeouts[:5], "it looks again by itself"


def test_a_stop_while_waiting_for_another_process_ends_the_build(world: World) -> None:
    world.leases.taken.add("gpu0")

    class Stopping(ScriptedWorkers):
        def wait(self, timeout: float | None) -> object:  # type: ignore[override]
            world.stop.set()
            return super().wait(timeout)

    result = world.build(command("perf", resources=Resources(lease="gpu0")), workers=Stopping())

    assert result.interrupted
    assert result.settled["//t:perf"].outcome is Outcome.CANCELLED


def test_only_what_was_requested_is_settled(world: World) -> None:
    one, two = command("one"), command("two")
    need = command("need", inputs={"one": one.output("result")})

    result = world.build(one, two, need, requested=(need,))

    assert list(result.settled) == ["//t:one", "//t:need"]


def test_equal_actions_at_once_run_once_and_both_settle(world: World) -> None:
    twins = [command(name, "run", inputs={}) for name in ("a", "b")]

    result = world.build(*twins)

    assert world.strategy.ran == ["//t:a"]
    first, second = (result.settled[f"//t:{name}"] for name in "ab")
    assert first.result == second.result
    assert (first.cached, second.cached) == (False, True)


def test_a_twin_of_a_machine_failure_gets_its_own_chance(world: World) -> None:
    def break_down(_: Prepared) -> Execution:
        raise InfraError(Reason.SANDBOX_FAILED, "no more processes")

    world.strategy.behaviours["//t:a"] = break_down
    result = world.build(*(command(name, "run", inputs={}) for name in ("a", "b")))

    assert result.settled["//t:a"].outcome is Outcome.INFRA
    assert result.settled["//t:b"].outcome is Outcome.DONE


@pytest.mark.parametrize("how", ["lost", "damaged"])
def test_a_lost_input_is_made_again(world: World, how: str) -> None:
    """A cached output that is gone when it is needed: its producer runs again, once."""
    made = command("made")
    others = [command(f"use{n}", inputs={"x": made.output("result")}) for n in range(2)]
    before = world.build(made).settled["//t:made"].result
    assert before
    digest = before.files[0].digest
    original = world.strategy.run
    lost: list[str] = []

    def losing(prepared: Prepared, cancel: threading.Event) -> Execution:
        if not lost and str(prepared.action.label) == "//t:use0":
            lost.append("once")
            if how == "lost":
                del world.cas.blobs[digest.hash]
            else:
                world.cas.blobs[digest.hash] = b"damaged"
            world.cas.get(digest)
        return original(prepared, cancel)

    world.strategy.run = losing  # type: ignore[method-assign]
    result = world.build(made, *others)

    assert all(s.outcome is Outcome.DONE for s in result.settled.values())
    assert world.strategy.ran.count("//t:made") == 1
    assert "running //t:made again" in world.sink.of(Warned)[0].message
    assert world.cas.has(digest)


def test_an_input_that_is_lost_every_time_is_given_up(world: World) -> None:
    made = command("made")
    user = command("user", inputs={"x": made.output("result")})

    def losing(prepared: Prepared) -> Execution:
        for _, node in prepared.root.walk():
            world.cas.blobs.pop(node.digest.hash)
            world.cas.get(node.digest)
        raise AssertionError

    world.strategy.behaviours["//t:user"] = losing
    result = world.build(made, user)

    assert result.settled["//t:user"].outcome is Outcome.INFRA
    assert "is not in the store" in result.settled["//t:user"].message


def test_a_full_store_is_a_machine_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: bytes) -> None:
        raise StoreError(Reason.STORE_FULL, "the store is full")

    monkeypatch.setattr(world.cas, "put", refuse)
    result = world.build(command("a"))

    assert result.settled["//t:a"].outcome is Outcome.INFRA
    assert "full" in result.settled["//t:a"].message


def test_an_interrupted_action_is_cancelled_not_blamed(world: World) -> None:
    """Whatever a killed action seems to be: an interruption, or a crash because of it."""
    for error in (
        Interrupted(Reason.INTERRUPTED, "stopped"),
        InfraError(Reason.ACTION_CRASHED, "killed by signal 9"),
    ):
        world.stop.clear()

        def stopped(_: Prepared, error: Exception = error) -> Execution:
            world.stop.set()
            raise error

        world.strategy.behaviours["//t:k.compile"] = stopped
        result = world.build(*pipeline())

        assert set(outcomes(result).values()) == {"cancelled"}
        assert result.interrupted
        assert world.sink.of(BuildFinished)[0].interrupted


def test_a_mistake_of_ours_ends_the_build_and_stops_what_runs(world: World) -> None:
    def broken(_: Prepared) -> Execution:
        raise ZeroDivisionError

    world.strategy.behaviours["//t:a"] = broken
    workers = ScriptedWorkers()

    with pytest.raises(ZeroDivisionError):
        world.build(command("a"), command("b"), workers=workers)

    assert not workers.running
    assert world.stop.is_set()
    assert world.strategy.ran == ["//t:a"], "the other one saw the stop"
    assert not world.leases.held


def test_real_threads_settle_a_graph() -> None:
    """Two runs that can only end if they overlap."""
    world = World()
    meet = threading.Barrier(2, timeout=30)

    def meeting(prepared: Prepared) -> Execution:
        meet.wait()
        return world.strategy.succeed(prepared)

    for name in ("a", "b"):
        world.strategy.behaviours[f"//t:{name}"] = meeting
    actions = [command("a"), command("b")]
    inputs = Inputs({}, NoIndex())
    executor = CachedExecutor(inputs, world.cas, world.cache, world.strategy)

    result = Scheduler(executor, world.sink, world.leases, jobs=2).run(ActionGraph.of(actions))

    assert [s.outcome for s in result.settled.values()] == [Outcome.DONE] * 2


def test_a_worker_that_cannot_start_ends_the_build_and_hangs_nothing(world: World) -> None:
    class Refusing(ScriptedWorkers):
        def start(self, run: Run, *rest: object) -> None:
            if self.running:
                raise RuntimeError("can't start new thread")
            super().start(run, *rest)  # type: ignore[arg-type]

    workers = Refusing()
    lease = Resources(lease="gpu")

    with pytest.raises(RuntimeError, match="new thread"):
        world.build(command("a"), command("b", resources=lease), workers=workers)

    assert not workers.running
    assert not world.leases.held
