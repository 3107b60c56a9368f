"""Local runs, end to end: the real store, the real sandbox, the real scheduler."""

from __future__ import annotations

import fcntl
import glob
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.execution import CachedExecutor, Inputs, LocalStrategy, prepare
from kabuild.model.action import Action, Artifact, Literal, Source
from kabuild.model.event import ActionSettled, Event
from kabuild.model.graph import ActionGraph
from kabuild.model.result import Outcome
from kabuild.sandbox import Spawner, probe
from kabuild.sandbox import namespaces as namespaces_module
from kabuild.scheduler import BuildResult, FileLeases, History, Scheduler
from kabuild.store import DiskCas, Store
from kabuild.store.cas import BlobMissingError
from kabuild.store.merkle import FileNode, build
from kabuild.store.paths import journals_of
from tests.testkit.actions import command, gate
from tests.testkit.events import RecordingSink

REPOSITORY = Path(__file__).parents[3]
PASS = """printf '{"schema":1,"gate":"%s","verdict":"PASS"}' > out/verdict.json"""


@pytest.fixture(scope="module")
def spawner() -> Iterator[Spawner]:
    if refusal := probe():
        pytest.skip(f"no sandboxes here: {refusal}")
    with Spawner() as spawner:
        yield spawner


class World:
    """A workspace and a store; each ``build`` opens the store like a fresh process."""

    def __init__(self, root: Path, spawner: Spawner) -> None:
        self.work = root / "work"
        self.work.mkdir()
        self.cache = root / "store"
        self.spawner = spawner
        self.warnings: list[str] = []

    def build(self, *actions: Action, debug: bool = False, isolate: bool = True) -> BuildResult:
        with Store.open(self.cache, warn=self.warnings.append) as store:
            warn = self.warnings.append
            strategy = LocalStrategy(store, self.spawner, debug=debug, isolate=isolate, warn=warn)
            inputs = Inputs({"workspace": self.work}, store.index)
            return Scheduler(
                CachedExecutor(inputs, store.cas, store.actions, strategy),
                RecordingSink(),
                FileLeases(store.leases),
                jobs=2,
                history=History(store.timings),
            ).run(ActionGraph.of(actions))


@pytest.fixture
def world(tmp_path: Path, spawner: Spawner) -> World:
    return World(tmp_path, spawner)


def two_gates() -> tuple[Action, Action]:
    """A "compiler" that drops comments, and a gate on what it made."""
    script = f"grep -v '^//' k.hip > out/k.so; {PASS.replace('%s', 'compile')}"
    compile_ = gate(
        "k.compile", "/bin/sh", "-c", script, inputs={"k.hip": Source("k.hip")}, outputs=("k.so",)
    )
    check = gate(
        "k.correctness",
        "/bin/sh",
        "-c",
        f"grep -q kernel k.so && {PASS.replace('%s', 'correctness')}",
        inputs={"k.so": compile_.output("k.so")},
        requires=(compile_,),
    )
    return compile_, check


def ran(result: BuildResult) -> list[str]:
    return [
        label.rpartition(".")[2] for label, settled in result.settled.items() if not settled.cached
    ]


def test_only_what_changed_runs_again(world: World) -> None:
    """By content, not by time; and a comment stops at the compiler: early cutoff."""
    source = world.work / "k.hip"
    source.write_text("kernel 1\n")
    assert ran(world.build(*two_gates())) == ["compile", "correctness"]
    assert ran(world.build(*two_gates())) == []

    os.utime(source)
    assert ran(world.build(*two_gates())) == []

    source.write_text("// a comment\nkernel 1\n")
    assert ran(world.build(*two_gates())) == ["compile"]

    source.write_text("// a comment\nkernel 2\n")
    assert ran(world.build(*two_gates())) == ["compile", "correctness"]

    source.write_text("kernel 1\n")
    assert ran(world.build(*two_gates())) == [], "known from before"


def test_a_damaged_binary_in_the_store_is_compiled_again(world: World) -> None:
    """The gate's result is lost too, so the damage is found when the binary is needed."""
    (world.work / "k.hip").write_text("// its source is another blob\nkernel 1\n")
    first = world.build(*two_gates()).settled
    compiled, checked = first["//t:k.compile"].result, first["//t:k.correctness"]
    assert compiled
    binary = compiled.file("k.so")
    assert binary
    with Store.open(world.cache) as store:
        assert isinstance(store.cas, DiskCas)
        blob = Path(store.cas.path_of(binary.digest))
    blob.chmod(0o644)
    blob.write_bytes(b"x" * binary.digest.size)
    assert checked.key
    (world.cache / "ac" / checked.key.hash[:2] / checked.key.hash).unlink()

    result = world.build(*two_gates())

    assert ran(result) == ["compile", "correctness"]
    assert all(s.outcome is Outcome.DONE for s in result.settled.values())
    assert any("dropped a damaged blob" in warning for warning in world.warnings)
    assert blob.read_bytes() == b"kernel 1\n"


def damage(world: World) -> None:
    """Change a byte of every blob."""
    for blob in (world.cache / "cas").rglob("*"):
        if blob.is_file() and (content := blob.read_bytes()):
            blob.unlink()
            blob.write_bytes(bytes([content[0] ^ 1]) + content[1:])


def test_damaged_blobs_are_healed_all_at_once(world: World) -> None:
    """From sources, from literals, and by what made them: nothing is left to a person."""
    (world.work / "one").write_text("1")
    (world.work / "two").write_text("2")
    script = "echo made > out/a; echo also > out/b"
    maker = command("maker", "/bin/sh", "-c", script, outputs=("a", "b"))
    inputs: dict[str, Artifact] = {
        "one": Source("one"),
        "two": Source("two"),
        "three": Literal(b"3"),
        "a": maker.output("a"),
        "b": maker.output("b"),
    }
    script = "cat one two three a b > out/result"
    world.build(maker, command("user", "/bin/sh", "-c", script, inputs=inputs))
    damage(world)

    again = command("user", "/bin/sh", "-c", f"{script}; true", inputs=inputs)
    result = world.build(maker, again)

    assert {item.outcome for item in result.settled.values()} == {Outcome.DONE}
    made = result.settled["//t:user"].result
    assert made
    with Store.open(world.cache) as store:
        assert store.cas.get(made.files[0].digest) == b"123made\nalso\n"
    assert sum("damaged blob" in text for text in world.warnings) >= 5


def test_what_cannot_be_made_again_is_named_all_at_once(world: World) -> None:
    """Only what is gone for good is the machine's failure."""
    with Store.open(world.cache) as store:
        lost = [store.cas.put(text) for text in (b"one", b"two")]
        damage(world)
        root = build((digest.hash, FileNode(digest)) for digest in lost)
        with pytest.raises(BlobMissingError) as caught:
            Inputs({"workspace": world.work}, store.index).supply(root, store.cas)
    assert {*caught.value.digests} == {*lost}
    assert all(str(digest) in caught.value.message for digest in lost)


def test_debugged_sandboxes_are_kept_and_named(world: World) -> None:
    action = command("a", "/bin/sh", "-c", "cp in out/result", inputs={"in": Literal(b"given")})

    world.build(action, debug=True)

    message = next(w for w in world.warnings if "is kept at" in w)
    kept = Path(message.rpartition(" ")[2])
    assert (kept / "exec" / "in").read_bytes() == b"given"
    assert kept.is_relative_to(world.cache / "debug")
    world.build(command("b", "/bin/sh", "-c", "true > out/result"))
    assert kept.is_dir(), "the next build does not sweep it"


def test_a_refused_sandbox_is_said_once_and_results_are_kept_apart(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces_module, "probe", lambda: "kernel says no")
    script = "true > out/result"
    result = world.build(
        command("a", "/bin/sh", "-c", script), command("b", "/bin/sh", "-c", script)
    )

    assert [w for w in world.warnings if "kernel says no" in w] == world.warnings
    assert len(world.warnings) == 1
    assert all(s.result and not s.result.hermetic for s in result.settled.values())
    monkeypatch.undo()
    again = world.build(command("a", "/bin/sh", "-c", script))
    assert not again.settled["//t:a"].cached


def test_what_never_runs_without_a_sandbox_does_not_where_there_is_none(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor is it taken from what had run without one."""
    monkeypatch.setattr(namespaces_module, "probe", lambda: "kernel says no")
    free = command("a", "/bin/sh", "-c", f"date >> {tmp_path}/ran; date > out/result")
    assert world.build(free).settled["//t:a"].outcome is Outcome.DONE

    session = replace(free, sandboxed=True)
    settled = [world.build(session, isolate=isolate).settled["//t:a"] for isolate in (True, False)]

    assert [item.fault for item in settled] == ["SANDBOX_UNAVAILABLE"] * 2
    refused, asked = (item.message.splitlines() for item in settled)
    assert refused[0].startswith("an agent's session needs a sandbox, and this machine does not")
    assert "kernel says no" in refused[0]
    assert asked[1] == "  leave out --sandbox=none"
    assert len((tmp_path / "ran").read_text().splitlines()) == 1, "it was started"


def test_a_journal_outlives_a_run_without_a_result(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the next run's of the same action, and no secret stays in it."""
    monkeypatch.setenv("SOME_KEY", "correct-horse")
    script = "echo $SOME_KEY >> /journal; cat /journal > out/result; test $(wc -l < /journal) = 2"
    once = replace(command("a", "/bin/sh", "-c", script), journal=True, secrets=("SOME_KEY",))

    first, second = world.build(once), world.build(once)

    assert first.settled["//t:a"].outcome is Outcome.FAILED
    assert second.settled["//t:a"].outcome is Outcome.DONE
    (journal,) = journals_of(world.cache).iterdir()
    assert journal.read_text() == "[SOME_KEY]\n" * 2
    assert world.build(once).settled["//t:a"].cached


def test_a_stop_kills_a_running_command_and_keeps_finished_work(world: World) -> None:
    """No clock: the first action's end is what sets the stop, while the second runs."""
    quick = command("quick", "/bin/sh", "-c", "true > out/result")
    slow = command("slow", "/bin/sh", "-c", "sleep 600", outputs=())
    stop = threading.Event()

    class StopOnFirst(RecordingSink):
        def emit(self, event: Event) -> None:
            if isinstance(event, ActionSettled):
                stop.set()

    with Store.open(world.cache) as store:
        strategy = LocalStrategy(store, world.spawner)
        executor = CachedExecutor(Inputs({}, store.index), store.cas, store.actions, strategy)
        scheduler = Scheduler(executor, StopOnFirst(), FileLeases(store.leases), jobs=2, stop=stop)
        result = scheduler.run(ActionGraph.of([slow, quick]))

    assert result.interrupted
    assert result.settled["//t:slow"].outcome is Outcome.CANCELLED
    assert result.settled["//t:quick"].outcome is Outcome.DONE
    assert world.build(quick).settled["//t:quick"].cached


TWO_AT_ONCE = """
import sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.kabuild.execution.test_local import World, two_gates
from kabuild.sandbox import Spawner
root = Path(sys.argv[1])
world = World.__new__(World)
world.work, world.cache, world.warnings = root / "work", root / "store", []
with Spawner() as world.spawner:
    print(sorted(s.outcome.value for s in world.build(*two_gates()).settled.values()))
"""


def test_two_kabuilds_at_once(world: World) -> None:
    (world.work / "k.hip").write_text("kernel 1\n")
    script = [sys.executable, "-c", TWO_AT_ONCE, str(world.work.parent), str(REPOSITORY)]
    both = [
        subprocess.Popen(script, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]

    printed = [process.communicate(timeout=60)[0] for process in both]

    assert printed == ["['done', 'done']\n"] * 2
    assert ran(world.build(*two_gates())) == []


def test_a_killed_build_leaves_a_store_that_works(world: World) -> None:
    """Kill -9 while a command runs: nothing half-written, the stage is swept, work goes on."""
    (world.work / "k.hip").write_text("kernel 1\n")
    slow = TWO_AT_ONCE.replace(
        "*two_gates()",
        "*two_gates(), command('slow', '/bin/sh', '-c', 'echo running >&2; sleep 600')",
    ).replace("import Spawner", "import Spawner\nfrom tests.testkit.actions import command")
    process = subprocess.Popen(
        [sys.executable, "-c", slow, str(world.work.parent), str(REPOSITORY)],
        cwd=REPOSITORY,
        start_new_session=True,
    )
    while not glob.glob(f"{world.cache}/tmp/*/stage.*/exec/out"):
        assert process.poll() is None, "it ended before it was killed"
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    for lock in (world.cache / "tmp").glob("*/lock"):
        with lock.open() as file:  # free once its sandboxes are dead, too
            fcntl.flock(file, fcntl.LOCK_EX)

    result = world.build(*two_gates())

    assert all(s.outcome is Outcome.DONE for s in result.settled.values())
    assert not list((world.cache / "tmp").iterdir())


def test_limits_reach_the_sandbox(world: World) -> None:
    """A stage that is larger than its scratch limit cannot be written."""
    from kabuild.model.action import Limits

    action = command(
        "big",
        "/bin/sh",
        "-c",
        "head -c 4000000 /dev/zero > out/result",
        limits=Limits(scratch=1 << 20),
    )

    settled = world.build(action).settled["//t:big"]

    assert settled.outcome is Outcome.FAILED
    assert "No space left" in settled.message


def test_preparing_twice_gives_one_key(world: World) -> None:
    with Store.open(world.cache) as store:
        action = two_gates()[0]
        (world.work / "k.hip").write_text("kernel 1\n")
        keys = {
            prepare(action, Inputs({"workspace": world.work}, store.index).root(action, {})).key
            for _ in range(2)
        }

    assert len(keys) == 1
