"""``kabuild validate`` by the real program: our starter tasks, and toy tasks that it rejects."""

from __future__ import annotations

import pytest

from tests.tasks.chosen import judged_in_turn
from tests.tasks.declared import starters
from tests.testkit.cli import CliWorkspace

from .conftest import KERNEL, REFERENCE, declare

BRIEF = "Multiplies every element of the vector x by two; y is contiguous, and so is x. One pass."


def ready(workspace: CliWorkspace, package: str = "double") -> None:
    """Give a toy task the brief that it lacks."""
    file = workspace.root / package / "BUILD.toml"
    file.write_text(file.read_text().replace('"y = 2 x."', f'"{BRIEF}"'))


@pytest.mark.slow
def test_starter_tasks_are_admitted(kept_workspace: CliWorkspace) -> None:
    with judged_in_turn("admitted", starters()) as tasks:
        for task in tasks:
            kept_workspace.adopt(task.label.removeprefix("//"))

        ran = kept_workspace.run("validate", "//...", "--samples=8", "--json")

        assert ran.code == 0, ran.out + ran.err
        entries = ran.json["targets"]
        assert len(entries) == len(tasks) > 0
        assert {(e["gate"], e["verdict"]) for e in entries} == {("admission", "PASS")}
        assert all("baseline and expert: " in e["summary"] for e in entries)


def test_a_sound_task_is_admitted_and_a_degenerate_one_is_not(quick: CliWorkspace) -> None:
    ready(quick)
    declare(quick, "zero")
    ready(quick, "zero")
    quick.write("zero/reference.py", REFERENCE.replace("2 * x", "0 * x"))

    ran = quick.run("validate", "//...", "--samples=8")

    assert ran.code == 3
    table = [line.split() for line in ran.out.splitlines() if line.startswith("//")]
    assert ["//double", "PASS", "-"] in [line[:3] for line in table]
    assert ["//zero", "REJECTED", "RANGE"] in [line[:3] for line in table]
    assert ran.out.count("output 'y' never exceeds 0") == 1
    assert "kabuild validate --samples=8 --nocache_test_results //zero:zero.admission" in ran.out


def test_a_verdict_is_cached_until_something_of_the_task_changes(quick: CliWorkspace) -> None:
    ready(quick)
    command = ("validate", "//double", "--samples=9", "--json")
    first, again = quick.run(*command), quick.run(*command)
    assert not first.gate("admission")["cached"]
    assert again.gate("admission")["cached"]
    assert first.gate("admission")["key"] == again.gate("admission")["key"]

    quick.write("double/solutions/expert/double.hip", KERNEL.replace("2.0f", "3.0f"))
    wrong = quick.run(*command).gate("admission")
    assert (wrong["verdict"], wrong["reason"]) == ("REJECTED", "SPACE_NOT_COVERED")
    assert wrong["summary"].startswith("the expert fails on f32 n=1048")


def test_admission_is_no_gate_of_test_and_no_agent_matters_to_it(quick: CliWorkspace) -> None:
    ready(quick)
    few = quick.root / "double/BUILD.toml"  # fewer sizes than `test` would draw
    few.write_text(few.read_text().replace("1..65536", "1..6").replace("1048", "4"))
    ran = quick.run("test", "//double", "--agent=none", "--gates=compile", "--json")
    assert [entry["gate"] for entry in ran.json["targets"]] == ["compile"]
    assert not any("admission" in label for label in ran.executed)

    keys = set()
    for agent in ("none", "expert"):
        ran = quick.run("test", "//double:double.admission", f"--agent={agent}", "--json")
        assert ran.code == 0, ran.out
        keys.add(ran.gate("admission")["key"])
    assert len(keys) == 1


def test_a_task_without_an_expert_is_judged_by_its_baseline(quick: CliWorkspace) -> None:
    ready(quick)
    (quick.root / "double/solutions/expert/double.hip").unlink()

    ran = quick.run("validate", "//double", "--samples=8", "--json")

    assert ran.code == 0, ran.out
    assert "baseline: 1 visible and 8 sampled configs" in ran.gate("admission")["summary"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("validate",), "PATTERNS"),
        (("validate", "//double", "--samples=0"), "--samples"),
        (("validate", "//toolchains/zig"), "no tasks match"),
    ],
)
def test_what_cannot_be_validated_is_an_error(
    quick: CliWorkspace, arguments: tuple[str, ...], said: str
) -> None:
    ran = quick.run(*arguments)

    assert ran.code in {2, 4}
    assert said in ran.err
