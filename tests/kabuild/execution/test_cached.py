"""What is answered from the cache, what is remembered, and what never is."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.base.errors import InfraError, Interrupted, Reason
from kabuild.execution import (
    CachedExecutor,
    CachePolicy,
    Execution,
    Inputs,
    Prepared,
    fresh_gates,
)
from kabuild.execution.outcome import conclude
from kabuild.model.action import Action, Source
from kabuild.model.result import ActionResult, Outcome, OutputFile, Settled
from kabuild.model.verdict import GateVerdict, Verdict
from tests.testkit.actions import command, gate
from tests.testkit.execution import ScriptedStrategy
from tests.testkit.index import NoIndex
from tests.testkit.store import MemoryActionCache, MemoryCas


class World:
    """One store and strategy; each ``settle`` is like a fresh process."""

    def __init__(self, root: Path = Path("/nowhere")) -> None:
        self.cas = MemoryCas()
        self.cache = MemoryActionCache(self.cas)
        self.strategy = ScriptedStrategy(self.cas)
        self.root = root

    def executor(self, policy: CachePolicy | None = None) -> CachedExecutor:
        inputs = Inputs({"workspace": self.root}, NoIndex())
        return CachedExecutor(inputs, self.cas, self.cache, self.strategy, policy)

    def settle(self, action: Action, policy: CachePolicy | None = None) -> Settled:
        executor = self.executor(policy)
        found = executor.lookup(action, {})
        if isinstance(found, Prepared):
            return executor.execute(found, threading.Event())
        return found


@pytest.fixture
def world() -> World:
    return World()


def judged(world: World, *verdicts: Verdict) -> None:
    """Make ``//t:g`` say these verdicts, one after another."""
    left = list(verdicts)

    def behave(prepared: Prepared) -> Execution:
        return world.strategy.judge(left.pop(0))(prepared)

    world.strategy.behaviours["//t:g"] = behave


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.FAIL, Verdict.REJECTED])
def test_every_verdict_is_remembered(world: World, verdict: Verdict) -> None:
    """A failure is a result too: the same candidate fails again without running."""
    judged(world, verdict)

    first, second = world.settle(gate("g")), world.settle(gate("g"))

    assert world.strategy.ran == ["//t:g"]
    assert (first.cached, second.cached) == (False, True)
    assert second == replace(first, cached=True)
    assert second.verdict
    assert second.verdict.verdict is verdict


def test_a_failed_command_that_is_no_gate_runs_again(world: World) -> None:
    world.strategy.behaviours["//t:a"] = world.strategy.fail()

    assert world.settle(command("a")).outcome is Outcome.FAILED
    assert world.settle(command("a")).outcome is Outcome.FAILED
    assert world.strategy.ran == ["//t:a"] * 2


@pytest.mark.parametrize(
    "error",
    [
        InfraError(Reason.SANDBOX_FAILED, "no processes left"),
        Interrupted(Reason.INTERRUPTED, "stopped"),
    ],
)
def test_what_could_not_run_is_not_remembered(world: World, error: Exception) -> None:
    def refuse(_: Prepared) -> Execution:
        raise error

    world.strategy.behaviours["//t:g"] = refuse
    with pytest.raises(type(error)):
        world.settle(gate("g"))
    del world.strategy.behaviours["//t:g"]

    assert not world.settle(gate("g")).cached


def test_a_cached_verdict_that_is_lost_or_damaged_is_made_again(world: World) -> None:
    first = world.settle(gate("g"))
    assert first.result
    digest = first.result.files[0].digest
    for damaged in (None, b"spoilt"):
        if damaged is None:
            del world.cas.blobs[digest.hash]
        else:
            world.cas.blobs[digest.hash] = damaged
        again = world.settle(gate("g"))

        assert not again.cached
        assert again.verdict == first.verdict
        assert world.settle(gate("g")).cached
        assert world.cas.has(digest)

    assert len(world.strategy.ran) == 3


def test_fresh_gates_runs_gates_and_nothing_else(world: World) -> None:
    policy = CachePolicy(read=fresh_gates)
    for action in (gate("g"), command("a")):
        world.settle(action)
        world.settle(action, policy)

    assert world.strategy.ran == ["//t:g", "//t:g", "//t:a"]
    assert world.settle(gate("g")).cached, "what ran afresh is remembered"


def test_a_policy_may_forbid_remembering(world: World) -> None:
    world.settle(command("a"), CachePolicy(write=lambda _: False))

    assert not world.settle(command("a")).cached


def test_runs_per_gate_runs_afresh_and_agrees(world: World) -> None:
    world.settle(gate("g"))

    settled = world.settle(gate("g"), CachePolicy(runs_per_gate=3))
    world.settle(command("a"), CachePolicy(runs_per_gate=3))

    assert world.strategy.ran == ["//t:g"] * 4 + ["//t:a"]
    assert not settled.cached
    assert settled.message == ""


def test_a_flake_is_reported_and_not_remembered(world: World) -> None:
    judged(world, Verdict.PASS, Verdict.FAIL, Verdict.PASS, Verdict.PASS)

    settled = world.settle(gate("g"), CachePolicy(runs_per_gate=3))

    assert settled.message == "flaky: 2 x PASS, 1 x FAIL"
    assert settled.verdict
    assert settled.verdict.verdict is Verdict.FAIL
    assert not world.settle(gate("g")).cached


def test_a_source_edited_during_the_run_leaves_no_result(tmp_path: Path) -> None:
    world = World(tmp_path)
    (tmp_path / "k.hip").write_text("before")
    action = gate("g", inputs={"k.hip": Source("k.hip")})

    def editing(prepared: Prepared) -> Execution:
        (tmp_path / "k.hip").write_text("after, while the action ran")
        return world.strategy.succeed(prepared)

    world.strategy.behaviours["//t:g"] = editing
    with pytest.raises(InfraError) as caught:
        world.settle(action)
    assert caught.value.reason is Reason.INPUT_CHANGED
    (tmp_path / "k.hip").write_text("before")
    del world.strategy.behaviours["//t:g"]

    assert not world.settle(action).cached


def test_results_without_a_sandbox_are_kept_apart(world: World) -> None:
    hermetic, world.strategy = world.strategy, ScriptedStrategy(world.cas, hermetic=False)

    first = world.settle(command("a"))
    assert first.result
    assert not first.result.hermetic
    again = world.settle(command("a"))
    assert again.cached
    assert again.result
    assert not again.result.hermetic

    world.strategy = hermetic
    proper = world.settle(command("a"))
    assert not proper.cached, "never answered from a run without a sandbox"
    world.strategy = ScriptedStrategy(world.cas, hermetic=False)
    better = world.settle(command("a"))
    assert better.cached, "a sandboxed result serves everyone"
    assert better.result
    assert better.result.hermetic


def test_what_the_key_is_made_of_can_be_looked_up_later(world: World) -> None:
    settled = world.settle(command("a"))

    assert settled.key
    assert world.cas.has(settled.key)


def test_a_skipped_gate_leaves_a_verdict_and_no_cache_entry(world: World) -> None:
    skipped = world.executor().skip(gate("g"), "compile: FAIL")

    assert skipped.outcome is Outcome.SKIPPED
    assert skipped.result
    file = skipped.result.file("verdict.json")
    assert file
    assert GateVerdict.from_json(world.cas.get(file.digest)) == GateVerdict.skipped(
        "g", "compile: FAIL"
    )
    assert not world.cache.entries
    assert world.executor().skip(command("a"), "why").verdict is None


def finished(world: World, action: Action, files: dict[str, bytes], **rest: object) -> Settled:
    """What ``action`` settles as after leaving ``files``."""
    outputs = tuple(OutputFile(path, world.cas.put(data)) for path, data in files.items())
    prepared = world.executor().lookup(action, {})
    assert isinstance(prepared, Prepared)
    fault = str(rest.pop("fault", ""))
    result = ActionResult(**{"exit_code": 0, "files": outputs, **rest})  # type: ignore[arg-type]
    return conclude(prepared, Execution(result, fault), world.cas)


PASS = GateVerdict("g", Verdict.PASS).to_json()
FAIL = GateVerdict("g", Verdict.FAIL, "COMPILE_ERROR").to_json()


@pytest.mark.parametrize(
    ("files", "how", "words"),
    [
        ({"verdict.json": PASS}, {"exit_code": 3}, "exit code 3"),
        ({"verdict.json": PASS}, {"fault": "timed out after 5 s"}, "timed out after 5 s"),
        ({}, {}, "it wrote no verdict.json"),
        ({"verdict.json": b"{"}, {}, "is not a valid verdict"),
        ({"verdict.json": b"[]"}, {}, "is not a valid verdict"),
        ({"verdict.json": PASS.replace(b"PASS", b"PERFECT")}, {}, "is not a valid verdict"),
        ({"verdict.json": GateVerdict("h", Verdict.PASS).to_json()}, {}, "belongs to gate 'h'"),
    ],
)
def test_a_gate_without_a_verdict_is_a_machine_failure(
    world: World, files: dict[str, bytes], how: dict[str, object], words: str
) -> None:
    """Never the candidate's: the judge deals with that one's crashes and time-outs."""
    stderr = world.cas.put(b"first\n" * 100 + b"Traceback: last words\n")

    with pytest.raises(InfraError, match="//t:g gave no verdict") as caught:
        finished(world, gate("g"), files, stderr=stderr, **how)
    assert caught.value.reason is Reason.ACTION_CRASHED
    assert words in caught.value.message
    assert "last words" in caught.value.hint
    assert len(caught.value.hint.splitlines()) == 20


def test_a_gate_that_passes_makes_all_its_outputs(world: World) -> None:
    action = gate("g", outputs=("k.so", "logs"))

    settled = finished(world, action, {"verdict.json": FAIL})
    assert settled.verdict
    assert settled.verdict.reason == "COMPILE_ERROR"
    with pytest.raises(InfraError, match=r"passed without making 'k\.so'"):
        finished(world, action, {"verdict.json": PASS})
    full = {"verdict.json": PASS, "k.so": b"", "logs/a": b""}
    assert finished(world, action, full, directories=("logs",)).outcome is Outcome.DONE


def test_a_command_must_make_its_outputs(world: World) -> None:
    action = command("a", outputs=("lib.so", "header.pch"))

    settled = finished(world, action, {"lib.so": b""})

    assert settled.outcome is Outcome.FAILED
    assert settled.message == "the command succeeded but did not make 'header.pch'"
    assert settled.lacking == "header.pch"


def test_a_command_that_refuses_its_input_says_why(world: World) -> None:
    action = command("a", outputs=("k.so", "verdict.json"))

    settled = finished(world, action, {"verdict.json": FAIL})

    assert settled.outcome is Outcome.FAILED
    assert settled.message == "COMPILE_ERROR"  # no summary
    assert settled.lacking == "k.so"


def test_a_stopped_command_failed(world: World) -> None:
    settled = finished(world, command("a"), {"result": b""}, fault="timed out after 5 s")

    assert settled.outcome is Outcome.FAILED
    assert settled.message == "timed out after 5 s"
