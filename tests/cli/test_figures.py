"""What ends up in figures: failures always, what the machine failed never, and not in silence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

if TYPE_CHECKING:
    from pathlib import Path

AGENTS = """\
[[agent]]
name    = "locked_out"
command = ["{python}", "-c", "pass"]
secrets = ["FIGURES_API_KEY"]

[[agent]]
name    = "linking"
command = ["{python}", "-c", "import os; os.unlink('double.hip'); os.symlink('/x', 'double.hip')"]
"""


@pytest.fixture
def pair(tmp_path: Path) -> CliWorkspace:
    """Two tasks that pass, published as ``good.kab``; a kernel saying "crash" stops its judge."""
    generate(tmp_path / "work", 2, shared=1, age=0)
    rule = tmp_path / "work/rules/copied/rule.py"
    text = rule.read_text().replace("v=pass;", "grep -q crash out/made && exit 9; v=pass;")
    rule.write_text(text)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    published = workspace.run("publish", "//...", "-o", "good.kab")
    assert published.code == 0, published.err
    return workspace


def test_what_the_machine_failed_is_compared_with_nothing(pair: CliWorkspace) -> None:
    pair.write("tasks/family0/t0/kernel.hip", "crash\n")
    text = pair.run("compare", "good.kab", "none", "//...")
    data = pair.run("compare", "none", "good.kab", "//...", "--json")

    assert (text.code, data.code) == (36, 36)
    assert [item["task"] for item in data.json["pairs"]] == ["//tasks/family0/t1"]
    assert (data.json["ties"], data.json["wins"], data.json["losses"]) == (1, 0, 0)
    assert data.json["unjudged"] == [{"//tasks/family0/t0": "ACTION_CRASHED"}, {}]
    assert "of none, excluded from all figures: //tasks/family0/t0 (ACTION_CRASHED)" in text.out
    assert (
        "warning: //tasks/family0/t0:t0.compile: could not be judged\n"
        "  //tasks/family0/t0:t0.compile gave no verdict"
    ) in text.err


def test_where_nothing_was_judged_there_is_no_ratio(pair: CliWorkspace) -> None:
    pair.write("tasks/family0/t0/kernel.hip", "crash\n")
    ran = pair.run("compare", "good.kab", "none", "//tasks/family0/t0", "--json")

    assert ran.code == 36
    assert (ran.json["pairs"], ran.json["ratio"], ran.json["p_value"]) == ([], None, 1.0)
    assert "nothing to compare" in pair.run("compare", "good.kab", "none", "//tasks/family0/t0").out


@pytest.mark.parametrize(
    "command",
    [("report", "//double", "--agents=none,//mine"), ("compare", "none", "//mine", "//double")],
)
def test_a_solution_that_is_not_there_is_told_once_and_is_no_success(
    quick: CliWorkspace, command: tuple[str, ...]
) -> None:
    """As by ``kabuild test``: nothing of that agent was judged, and the machine works."""
    quick.write("mine/BUILD.toml", '[[agent]]\nname = "mine"\nreplays = "exprt"\n')

    ran = quick.run(*command, "--gates=compile")

    assert ran.code == 1
    assert (
        "warning: //double:double.compile: failed\n"
        "  no file 'double/solutions/exprt/double.hip' in the workspace\n"
    ) in ran.err
    assert ran.err.count("exprt") == 1


def test_a_failure_never_wins_and_is_no_failure_of_the_command(pair: CliWorkspace) -> None:
    pair.write("tasks/family0/t0/kernel.hip", "bad\n")
    ran = pair.run("compare", "none", "good.kab", "//...", "--json")

    assert ran.code == 0, ran.err
    first, second = ran.json["pairs"]
    assert (first["one_right"], first["winner"], first["ratio"]) == (0.0, 2, 0.5)
    assert (second["winner"], second["ratio"]) == (0, 1.0)
    assert ran.json["unjudged"] == [{}, {}]


def test_different_devices_are_not_compared_and_nothing_runs(pair: CliWorkspace) -> None:
    """The bundle is of ``cpu``; what it would be compared with is not built in vain."""
    pair.write("tasks/family0/t0/kernel.hip", "// another\n")
    ran = pair.run("compare", "none", "good.kab", "//...", "--platform=rocm:gfx942")

    assert (ran.code, ran.out, ran.executed) == (2, "", set())
    assert "platform: rocm and cpu" in ran.err
    assert "kabuild report none good.kab" in ran.err


def test_a_mistake_in_the_second_agent_costs_nobody_the_first(pair: CliWorkspace) -> None:
    pair.write("tasks/family0/t0/kernel.hip", "// another\n")
    ran = pair.run("compare", "none", "nobody", "//...")

    assert (ran.code, ran.out, ran.executed) == (2, "", set()), ran.err
    assert "no agent //toolchains/agents:nobody" in ran.err


def test_another_policy_is_remarked_and_compared(pair: CliWorkspace) -> None:
    ran = pair.run("compare", "good.kab", "none", "//...", "--policy=geomean")

    assert ran.code == 0
    assert "warning: the two differ in policy: aka and geomean" in ran.err


def test_its_help_offers_no_flag_that_it_refuses(workspace: CliWorkspace) -> None:
    compared, tested = (workspace.run(name, "--help").out for name in ("compare", "test"))
    for flag in ("--agent ", "--solution "):
        assert flag in tested
        assert flag not in compared
    assert "--trials" in compared


def test_who_hands_in_nothing_usable_stays_in_every_figure(quick: CliWorkspace) -> None:
    quick.write("agents/BUILD.toml", AGENTS)
    ran = quick.run("report", "//double", "--agents=//agents:linking,//agents:locked_out",
                    "--format=json")  # fmt: skip
    linking, locked_out = ran.json["standings"]

    assert ran.code == 36
    assert (linking["tasks"], linking["compiled"], linking["unseen"]) == (1, 0.0, 0.0)
    assert (linking["geomean"], linking["faster"], linking["fast"]["0"]) == (1.0, 0.0, 0.0)
    (result,) = ran.json["evaluations"][0]["results"]
    assert list(result["gates"]) == ["compile", "correctness", "perf", "unseen", "score"]
    assert (locked_out["tasks"], locked_out["geomean"], locked_out["fast"]) == (0, None, {})
    assert locked_out["unjudged"] == {"//double": "NO_SECRET"}
    assert ran.err.count("needs the secret FIGURES_API_KEY") == 1


def test_trials_that_the_machine_failed_pass_and_fail_nothing(quick: CliWorkspace) -> None:
    quick.write("agents/BUILD.toml", AGENTS)
    flags = ("--agent=//agents:locked_out", "--trials=2", "--gates=compile")
    ran = quick.run("test", "//double", *flags, "--json")
    shown = quick.run("test", "//double", *flags)

    (trials,) = ran.json["trials"]
    assert (ran.code, trials["unjudged"], trials["pass_at"]) == (36, [1, 2], {})
    assert "not judged, excluded from all figures: //double (all 2 trials)" in shown.out
    assert shown.out.count("needs the secret FIGURES_API_KEY") == 1
    assert "//double:double.agent and 1 more: could not be judged" in shown.out
    assert "\n  also affected: //double:double.agent#2\n" in shown.out
    assert json.dumps(trials["best_at"]) == "{}"
