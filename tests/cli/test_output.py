"""What people and programs get: tables, --json, out/, JUnit, the trace."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.testkit.cli import REPOSITORY, CliWorkspace, Ran
from tests.testkit.generated import generate

from .conftest import KERNEL, declare

GATES = ["compile", "correctness", "perf", "unseen", "score"]
TOTALS = {"executed", "cached", "passed", "failed", "rejected", "skipped", "infra", "remote"}


def text(value: Any) -> bool:
    return isinstance(value, str)


def number(value: Any) -> bool:
    return type(value) in {int, float} and value >= 0


def count(value: Any) -> bool:
    return type(value) is int and value >= 0


def flag(value: Any) -> bool:
    return type(value) is bool


def key(value: Any) -> bool:
    return value is None or bool(re.fullmatch("[0-9a-f]{64}", value))


def figure(value: Any) -> bool:
    return value is None or number(value)


REPORT: dict[str, Callable[[Any], bool]] = {
    "schema": lambda value: value == 1,
    "kabuild": text,
    "platform": text,
    "agent": text,
    "targets": lambda value: isinstance(value, list),
    "agents": lambda value: value == [],
    "trials": lambda value: value == [],
    "totals": lambda value: value.keys() == TOTALS and all(map(count, value.values())),
    "seconds": number,
    "exit_code": count,
}
TARGET: dict[str, Callable[[Any], bool]] = {
    "label": text,
    "task": text,
    "trial": lambda value: value == 1,
    "gate": lambda value: value in GATES,
    "verdict": lambda value: value in {"PASS", "FAIL", "REJECTED", "SKIPPED", "INFRA", "CANCELLED"},
    "reason": lambda value: bool(re.fullmatch("[A-Z_]*", value)),
    "summary": text,
    "cached": flag,
    "hermetic": flag,
    "seconds": number,
    "key": key,
    "speedup": figure,
    "speedup_low": figure,
    "speedup_high": figure,
    "score": figure,
}
CRASH = """\
from kabuild.rule import Rule


def implement(ctx):
    ctx.action(
        "", argv=("/bin/sh", "-c", "exit 7"), inputs={}, outputs=("x",), mnemonic="Crash"
    )


RULE = Rule(kind="crash", doc="Makes nothing.", implement=implement, attrs={})
"""
BUILT: dict[str, Callable[[Any], bool]] = {
    "label": text,
    "trial": lambda value: value == 1,
    "gate": lambda value: value is None or value in GATES,
    "outcome": lambda value: value in {"done", "failed", "skipped", "infra", "cancelled"},
    "verdict": lambda value: value is None or TARGET["verdict"](value),
    **{
        name: TARGET[name] for name in ("reason", "summary", "cached", "hermetic", "seconds", "key")
    },
    "output": lambda value: value is None or value.startswith("out/"),
}


@pytest.fixture(scope="module")
def mixed(module_workspace: CliWorkspace) -> tuple[CliWorkspace, Ran, Ran]:
    """One task that passes, one that is wrong and one that does not compile; --json, printed."""
    workspace = module_workspace
    declare(workspace, "tasks/good")
    declare(workspace, "tasks/wrong", solution=KERNEL.replace("2.0f", "3.0f"))
    declare(workspace, "tasks/broken", solution=KERNEL.replace("2.0f", "factor"))
    ran = workspace.run("test", "//tasks/...", "--json")
    return workspace, ran, workspace.run("test", "//tasks/...")


def test_json_keeps_its_schema(mixed: tuple[CliWorkspace, Ran, Ran]) -> None:
    report = mixed[1].json

    assert list(report) == list(REPORT)
    for name, check in REPORT.items():
        assert check(report[name]), (name, report[name])
    for entry in report["targets"]:
        assert list(entry) == list(TARGET)
        for name, check in TARGET.items():
            assert check(entry[name]), (name, entry[name])
    assert report["exit_code"] == mixed[1].code == 3


def test_the_schema_is_the_documented_one() -> None:
    page = (REPOSITORY / "docs/results.md").read_text()
    section = page.partition("## Results for programs")[2].partition("\n## ")[0]

    for name in (*REPORT, *TARGET, *BUILT, *TOTALS):
        assert f"`{name}`" in section, name


def test_every_task_and_gate_is_in_the_result(mixed: tuple[CliWorkspace, Ran, Ran]) -> None:
    """What fails stays in the denominator."""
    report = mixed[1].json

    asked = {(f"//tasks/{task}:{task}", g) for task in ("good", "wrong", "broken") for g in GATES}
    assert {(entry["task"], entry["gate"]) for entry in report["targets"]} == asked
    assert len(report["targets"]) == len(asked)
    totals = report["totals"]
    verdicts = [entry["verdict"] for entry in report["targets"]]
    for word, name in (("PASS", "passed"), ("FAIL", "failed"), ("SKIPPED", "skipped")):
        assert totals[name] == verdicts.count(word)
    assert totals["passed"] + totals["failed"] + totals["skipped"] == len(asked)
    scores = {e["task"]: e["score"] for e in report["targets"] if e["gate"] == "score"}
    assert scores["//tasks/wrong:wrong"] == 20
    assert scores["//tasks/broken:broken"] == 0
    assert scores["//tasks/good:good"] > 120


def test_json_of_a_build_says_what_was_made(mixed: tuple[CliWorkspace, Ran, Ran]) -> None:
    workspace = mixed[0]
    parts = ("good:good.compile", "broken:broken.compile", "good:good.baseline.compile")
    ran = workspace.run("build", *(f"//tasks/{part}" for part in parts), "-k", "--json")

    assert ran.code == ran.json["exit_code"] == 1
    for entry in ran.json["targets"]:
        assert list(entry) == list(BUILT)
        for name, check in BUILT.items():
            assert check(entry[name]), (name, entry[name])
    found = {entry["label"].removeprefix("//tasks/"): entry for entry in ran.json["targets"]}
    assert found.keys() == {*parts}
    good, broken, baseline = (found[part] for part in parts)
    assert (good["gate"], good["outcome"], good["verdict"]) == ("compile", "done", "PASS")
    assert (broken["outcome"], broken["verdict"]) == ("failed", "FAIL")
    assert broken["reason"] == "COMPILE_ERROR"
    assert "factor" in broken["summary"]
    assert [ran.json["totals"][name] for name in ("passed", "failed", "infra")] == [1, 1, 0]
    assert (baseline["gate"], baseline["outcome"], baseline["verdict"]) == (None, "done", None)
    verdict = json.loads((workspace.root / broken["output"] / "verdict.json").read_text())
    assert verdict["reason"] == "COMPILE_ERROR"
    assert (workspace.root / good["output"] / "verdict.json").is_file()


def test_json_of_a_build_says_what_could_not_be_made(workspace: CliWorkspace) -> None:
    workspace.write("rules/crash/rule.py", CRASH)
    workspace.write("crash/BUILD.toml", '[[crash]]\nname = "crash"\n')

    ran = workspace.run("build", "//crash", "--json")

    assert ran.code == 1, ran.err
    (entry,) = ran.json["targets"]
    assert (entry["outcome"], entry["gate"], entry["verdict"]) == ("failed", None, None)
    assert "exit code 7" in entry["summary"]


def test_json_is_alone_on_stdout(mixed: tuple[CliWorkspace, Ran, Ran]) -> None:
    assert mixed[1].out.startswith("{\n")
    assert mixed[1].out.endswith("}\n")


def test_the_table_has_a_row_per_task(mixed: tuple[CliWorkspace, Ran, Ran]) -> None:
    lines = mixed[2].out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("task "))
    cells = [re.split(r"\s{2,}", line) for line in lines[start:]]

    assert cells[0] == ["task", "compile", "correctness", "perf", "unseen", "speedup", "score"]
    rows = {row[0]: row[1:] for row in cells[1:4]}
    assert rows["//tasks/good"][:4] == ["PASS"] * 4
    assert re.fullmatch(r"~?\d+\.\d+x( ±[\d.]+ %)?", rows["//tasks/good"][4])
    assert rows["//tasks/wrong"] == ["PASS", "FAIL", "SKIPPED", "SKIPPED", "-", "20.0", "cached"]
    assert rows["//tasks/broken"][0] == "FAIL"
    assert re.fullmatch(
        r"\d+ actions: \d+ cached, 0 executed; gates: 6 passed, 4 failed, 5 skipped; \d+\.\d\d s",
        lines[-1],
    )
    assert "\x1b" not in mixed[2].out


def test_junit_agrees(mixed: tuple[CliWorkspace, Ran, Ran]) -> None:
    workspace, ran, _ = mixed
    root = ElementTree.parse(workspace.root / "out/test.xml").getroot()

    assert root.tag == "testsuites"
    cases = root.findall("testsuite/testcase")
    assert len(cases) == len(ran.json["targets"])
    for kind, name in (("failure", "failed"), ("skipped", "skipped"), ("error", "infra")):
        assert len(root.findall(f"testsuite/testcase/{kind}")) == ran.json["totals"][name]
    for suite in root:
        for attribute, tag in (
            ("failures", "failure"),
            ("skipped", "skipped"),
            ("errors", "error"),
        ):
            assert int(suite.get(attribute, "")) == len(suite.findall(f"testcase/{tag}"))
        assert int(suite.get("tests", "")) == len(suite)
    (failure,) = root.findall(".//testcase[@name='correctness']/failure")
    assert failure.get("type") == "WRONG_RESULT"
    assert "worst at [" in (failure.text or "")


def test_out_shows_outputs_and_verdicts(mixed: tuple[CliWorkspace, Ran, Ran]) -> None:
    out = mixed[0].root / "out/tasks/good"

    assert (out / "good.compile/kernel.so").read_bytes().startswith(b"\x7fELF")
    for gate in GATES:
        verdict = json.loads((out / f"good.{gate}/verdict.json").read_bytes())
        assert (verdict["gate"], verdict["verdict"]) == (gate, "PASS")
    assert json.loads((out / "good.perf/samples.json").read_bytes())
    assert json.loads((out / "good.score/score.json").read_bytes())
    broken = mixed[0].root / "out/tasks/broken"
    assert not (broken / "broken.compile/kernel.so").exists()
    assert "'factor'" in (broken / "broken.compile/stderr.log").read_text()


def test_the_trace_can_be_read(mixed: tuple[CliWorkspace, Ran, Ran]) -> None:
    trace = json.loads((mixed[0].root / "out/profile.json").read_bytes())

    assert isinstance(trace["traceEvents"], list)


def test_a_build_shows_where_its_outputs_are(quick: CliWorkspace) -> None:
    ran = quick.run("build", "//double:double.compile")

    assert ran.code == 0
    assert "//double:double.compile  out/double/double.compile\n" in ran.out
    assert (quick.root / "out/double/double.compile/kernel.so").is_file()


def test_a_build_of_what_does_not_compile_fails(quick: CliWorkspace) -> None:
    quick.write("double/solutions/expert/double.hip", KERNEL.replace("2.0f", "factor"))

    ran = quick.run("build", "//double:double.compile")

    assert ran.code == 1
    assert "'factor'" in ran.out
    assert "double.hip:5:" in ran.out
    label = "//double:double.compile"
    assert f"  rerun it with: kabuild build {label}\n" in ran.out
    assert f"\n{label}  FAIL (COMPILE_ERROR)  out/double/double.compile\n" in ran.out


def test_out_shows_nothing_of_gates_that_a_failure_stopped(tmp_path: Path) -> None:
    """Not the verdicts of what was tested before, beside a table that says SKIPPED."""
    generate(tmp_path / "work", 1, shared=1, age=0)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    request = ("test", "//tasks/...", "--gates=compile,correctness")
    assert workspace.run(*request).code == 0

    workspace.write("tasks/family0/t0/kernel.hip", "bad\n")
    ran = workspace.run(*request)

    assert re.search("FAIL +SKIPPED", ran.out)
    (shown,) = (workspace.root / "out").glob("**/verdict.json")
    assert shown.parent.name == "t0.compile"


def test_progress_goes_to_stderr_and_results_to_stdout(quick: CliWorkspace) -> None:
    quick.write("double/solutions/expert/double.hip", KERNEL.replace("256", "512"))

    ran = quick.run("test", "//double", "--gates=compile")

    assert re.search(r"(^|\n)\[\d+/\d+\] Compile //double:double.compile PASS \d", ran.err)
    assert "[" not in ran.out


def test_colours_are_for_terminals(quick: CliWorkspace) -> None:
    """Through a pseudo-terminal; NO_COLOR keeps its word there, too."""
    quick.write("double/solutions/expert/double.hip", KERNEL.replace("256", "1024"))
    command = " ".join(quick.command("test", "//double", "--gates=compile"))
    shown = []
    for extra in ({"TERM": "xterm"}, {"TERM": "xterm", "NO_COLOR": "1"}):
        env = {k: v for k, v in quick.environment().items() if k != "NO_COLOR"}
        done = subprocess.run(
            ["script", "-qec", command, "/dev/null"],
            cwd=quick.root,
            env={**env, **extra},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        shown.append(done.stdout)

    assert "\x1b[32mPASS" in shown[0]
    assert "\x1b[32m" not in shown[1]
    assert "Traceback" not in "".join(shown)


def test_a_solution_that_is_not_there_is_told_once(quick: CliWorkspace) -> None:
    """By the action that lacks it, with the name that was meant; gates have nothing to add."""
    quick.write("mine/BUILD.toml", '[[agent]]\nname = "mine"\nreplays = "exprt"\n')

    ran = quick.run("test", "//double", "--agent=//mine", "--gates=compile")

    assert ran.code == 1
    assert ran.out.startswith(
        "//double:double.compile: failed\n"
        "  no file 'double/solutions/exprt/double.hip' in the workspace\n"
        "  did you mean 'expert'?\n"
        "  judge the task's own kernel with --agent=none, or yours with --solution=FILE\n\ntask "
    )
    assert ran.out.count("exprt") == 1


def test_the_cause_is_shown_where_only_its_effect_was_asked_for(quick: CliWorkspace) -> None:
    quick.write("double/solutions/expert/double.hip", KERNEL.replace("2.0f", "factor"))

    ran = quick.run("test", "//double", "--gates=unseen")

    assert ran.code == 3
    assert "//double:double.compile: FAIL (COMPILE_ERROR)" in ran.out
    assert "//double:double.unseen: SKIPPED (EARLIER_GATE)" in ran.out
