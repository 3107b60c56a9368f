"""Only what changed runs again, and nothing that should run again is missed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace, Ran, copy_store

from .conftest import KERNEL, REFERENCE, declare

FAST = "--gates=compile,correctness"
SOLUTION = "one/solutions/expert/double.hip"
CHANGED = KERNEL.replace("256", "128")


def declare_two(workspace: CliWorkspace) -> None:
    """//one, whose solution is its own kernel, and //two, whose is not."""
    declare(workspace, "one")
    declare(workspace, "two", solution=KERNEL.replace("256", "64"))


@pytest.fixture(scope="module")
def finished(module_workspace: CliWorkspace) -> CliWorkspace:
    """Two tasks, judged by all gates."""
    declare_two(module_workspace)
    ran = module_workspace.run("test", "//...")
    assert ran.code == 0, ran.out + ran.err
    return module_workspace


@pytest.fixture
def built(finished: CliWorkspace, tmp_path: Path) -> CliWorkspace:
    """The finished workspace and its store, at another place and free to be changed."""
    return finished.copy(tmp_path)


def outputs(workspace: CliWorkspace) -> dict[str, bytes]:
    """What ``out/`` shows of actions, by path."""
    out = workspace.root / "out"
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.parent != out
    }


def nothing_ran(ran: Ran) -> bool:
    totals = ran.json["totals"]
    return ran.code == 0 and totals["executed"] == 0 and totals["cached"] > 0 and not ran.err


def test_an_unchanged_workspace_is_answered_from_the_cache(built: CliWorkspace) -> None:
    """All gates, from another directory: results belong to content and not to places."""
    ran = built.run("test", "//...", "--json")

    assert nothing_ran(ran)
    entries = ran.json["targets"]
    assert [entry["verdict"] for entry in entries] == ["PASS"] * 10
    assert all(entry["cached"] and entry["seconds"] == 0 for entry in entries)


def test_time_stamps_do_not_count(built: CliWorkspace) -> None:
    built.run("test", "//...")
    for path in built.root.rglob("*"):
        os.utime(path)

    assert nothing_ran(built.run("test", "//...", "--json"))


def test_a_comment_is_compiled_and_stops_there(built: CliWorkspace) -> None:
    built.write(SOLUTION, f"// Doubles.\n\n{KERNEL}")

    ran = built.run("test", "//...")

    assert ran.code == 0
    assert ran.executed == {"//one:one.compile"}
    assert " 1 executed;" in ran.out


def test_a_changed_kernel_is_judged_again_and_no_other(built: CliWorkspace) -> None:
    built.write(SOLUTION, CHANGED)

    ran = built.run("test", "//...")

    parts = ("compile", "correctness", "perf", "unseen", "score")
    assert ran.code == 0
    assert ran.executed == {f"//one:one.{part}" for part in parts}

    built.write(SOLUTION, KERNEL)
    assert nothing_ran(built.run("test", "//...", "--json"))


def test_a_changed_oracle_or_config_judges_again_but_compiles_nothing(
    built: CliWorkspace,
) -> None:
    built.write("one/reference.py", REFERENCE.replace("2 * x", "x + x"))
    declaration = built.root / "two/BUILD.toml"
    declaration.write_text(declaration.read_text().replace("{ n = 1048 }", "{ n = 1049 }"))

    ran = built.run("test", "//...", FAST, "--explain=why.txt")

    assert ran.code == 0
    assert ran.executed == {"//one:one.correctness", "//two:two.correctness"}
    why = (built.root / "why.txt").read_text()
    assert "task/reference.py" in why
    assert "spec.json" in why


def test_a_changed_brief_changes_nothing(built: CliWorkspace) -> None:
    declaration = built.root / "one/BUILD.toml"
    declaration.write_text(declaration.read_text().replace('"y = 2 x."', '"Twice x."'))

    assert nothing_ran(built.run("test", "//...", "--json"))


def test_fresh_results_can_be_asked_for(built: CliWorkspace) -> None:
    """Of gates: solutions and baselines are no test results."""
    ran = built.run("test", "//...", "--gates=compile", "--nocache_test_results")

    assert ran.code == 0
    assert ran.executed == {"//one:one.compile", "//two:two.compile"}


def test_repeated_runs_of_honest_work_agree(built: CliWorkspace) -> None:
    ran = built.run("test", "//one", "--gates=correctness", "--runs_per_test=2", "--json")

    assert ran.code == 0
    gate = ran.gate("correctness")
    assert (gate["verdict"], gate["cached"]) == ("PASS", False)
    assert "flaky" not in gate["summary"]


def test_explain_names_the_input_that_changed(built: CliWorkspace) -> None:
    built.write(SOLUTION, CHANGED)

    built.run("test", "//...", "--gates=compile", "--explain=why.txt")

    paragraphs = (built.root / "why.txt").read_text().split("\n//")
    about = {text.partition(": ")[0].removeprefix("//"): text for text in paragraphs}
    assert "candidate/double.hip" in about["one:one.compile"]
    assert "cached" in about["two:two.compile"]


def test_out_is_disposable(built: CliWorkspace) -> None:
    before = outputs(built)
    assert "one/one.compile/kernel.so" in before
    shutil.rmtree(built.root / "out")

    assert nothing_ran(built.run("test", "//...", "--json"))
    assert outputs(built) == before


def damage(workspace: CliWorkspace, output: str) -> Path:
    """Flip bits of one output's blob in the store; returns the blob."""
    digest = hashlib.sha256((workspace.root / "out" / output).read_bytes()).hexdigest()
    blob = workspace.store / "cas" / digest[:2] / digest
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 0xFF
    blob.unlink()
    blob.write_bytes(data)
    blob.chmod(0o555)
    return blob


def test_a_damaged_blob_is_noticed_dropped_and_made_again(built: CliWorkspace) -> None:
    blob = damage(built, "one/one.compile/kernel.so")

    ran = built.run("test", "//one", "--gates=correctness", "--nocache_test_results")

    assert ran.code == 0, ran.out
    assert "warning: dropped a damaged blob from the store" in ran.err
    assert {"//one:one.compile", "//one:one.correctness"} <= ran.executed
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name


def test_a_damaged_blob_that_is_only_shown_is_made_again(built: CliWorkspace) -> None:
    """Nothing runs, but the view of the output has to be linked."""
    blob = damage(built, "one/one.compile/kernel.so")
    before = outputs(built)
    shutil.rmtree(built.root / "out")

    first = built.run("test", "//one", FAST)
    second = built.run("test", "//...")

    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert "warning: dropped a damaged blob from the store" in first.err
    assert outputs(built) == before
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name


def test_a_damaged_verdict_is_made_again(built: CliWorkspace) -> None:
    damage(built, "two/two.compile/verdict.json")

    ran = built.run("test", "//two", FAST)

    assert ran.code == 0
    assert ran.executed == {"//two:two.compile"}
    assert "warning: dropped a damaged" in ran.err


def test_two_at_once_share_a_store_and_agree(built: CliWorkspace, tmp_path: Path) -> None:
    """Two workspaces with the same new work."""
    built.write(SOLUTION, CHANGED)
    other = CliWorkspace(tmp_path / "other", built.store)
    shutil.copytree(built.root, other.root)

    running = [
        subprocess.Popen(
            workspace.command("test", "//...", "--gates=compile", "--json"),
            cwd=workspace.root,
            env=workspace.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for workspace in (built, other)
    ]
    ran = [Ran(p.wait(), *p.communicate()) for p in running]

    assert [r.code for r in ran] == [0, 0], [r.err for r in ran]
    verdicts = [{e["label"]: e["verdict"] for e in r.json["targets"]} for r in ran]
    assert verdicts[0] == verdicts[1]
    assert nothing_ran(built.run("test", "//...", "--gates=compile", "--json"))


def test_another_store_gives_the_same_bytes(
    finished: CliWorkspace, tmp_path: Path, runtime_store: Path
) -> None:
    """Of everything but what was timed: verdicts hold no times, no paths and no chance."""
    copy_store(runtime_store, tmp_path / "store")
    again = CliWorkspace.make(tmp_path)
    declare_two(again)

    gates = "--gates=compile,correctness,unseen"
    ran = again.run("test", "//...", gates, "--nocache_test_results")

    assert ran.code == 0
    assert {f"//{task}:{task}.correctness" for task in ("one", "two")} <= ran.executed
    compared = [
        f"{task}/{task}.{gate}/verdict.json"
        for task in ("one", "two")
        for gate in ("compile", "correctness", "unseen")
    ]
    compared += [f"{task}/{task}.compile/kernel.so" for task in ("one", "two")]
    before, now = outputs(finished), outputs(again)
    assert {path: now[path] for path in compared} == {path: before[path] for path in compared}
