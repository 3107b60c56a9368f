"""What a build leaves for programs: each is read by a program that was made for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from junitparser import JUnitXml
from markdown_it import MarkdownIt

from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "| a | ``` </td> <script> * \x1b[31m ]]>"


@pytest.fixture
def workspace(tmp_path: Path) -> CliWorkspace:
    generate(tmp_path / "work", 2, shared=1, age=0)
    rule = tmp_path / "work/rules/copied/rule.py"
    rule.write_text(rule.read_text().replace('"detail": ""', f'"detail": {HOSTILE!r}'))
    (tmp_path / "work/tasks/family0/t1/kernel.hip").write_text("bad\n")
    return CliWorkspace(tmp_path / "work", tmp_path / "store")


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a stream."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_stream_tells_all_of_a_build(workspace: CliWorkspace) -> None:
    ran = workspace.run("test", "//...", "--events=events.jsonl")
    assert ran.code == 3
    first, started, *middle, last = lines_of(workspace.root / "events.jsonl")

    assert (first["event"], first["schema"]) == ("stream", "kabuild/events/1")
    settled = [line for line in middle if line["event"] == "action_settled"]
    assert (started["event"], started["total"]) == ("started", len(settled))
    assert {line["verdict"] for line in settled} == {"PASS", "FAIL", "SKIPPED"}
    tasks = {line["task"]: line for line in middle if line["event"] == "task"}
    assert tasks["//tasks/family0/t0:t0"]["speedup"] == 2.0
    assert tasks["//tasks/family0/t1:t1"]["gates"]["compile"]["reason"] == "WRONG_RESULT"
    assert (last["event"], last["exit_code"]) == ("finished", 3)
    times = [line["at"] for line in (started, *middle, last)]
    assert times == sorted(times)


def test_the_platform_is_the_one_that_was_asked_for(workspace: CliWorkspace) -> None:
    compiled = "//tasks/family0/t0:t0.compile"
    for platform in ("cpu", "rocm:gfx942"):
        ran = workspace.run("build", compiled, f"--platform={platform}", "--events=events.jsonl")
        assert ran.code == 0, ran.err
        told = lines_of(workspace.root / "events.jsonl")[1]["platform"]
        assert told.startswith(platform)  # of cpu it is the machine's, too


def test_a_build_of_nothing_new_tells_its_tasks_too(workspace: CliWorkspace) -> None:
    workspace.run("test", "//tasks/family0/t0")
    ran = workspace.run("test", "//tasks/family0/t0", "--events=events.jsonl")
    assert ran.code == 0
    assert not ran.executed
    *_, task, last = lines_of(workspace.root / "events.jsonl")
    assert all(said["cached"] for said in task["gates"].values())
    assert last["totals"]["executed"] == 0


def test_ci_reads_the_test_report(workspace: CliWorkspace) -> None:
    workspace.run("test", "//...")
    document = JUnitXml.fromfile(str(workspace.root / "out/test.xml"))
    suites = {suite.name: suite for suite in document}
    good, bad = suites["//tasks/family0/t0:t0"], suites["//tasks/family0/t1:t1"]

    assert (good.tests, good.failures, good.skipped) == (5, 0, 0)
    assert (bad.tests, bad.failures, bad.errors, bad.skipped) == (5, 1, 0, 4)
    (failure,) = next(iter(bad)).result
    assert failure.type == "WRONG_RESULT"


def test_a_trace_viewer_finds_a_span_for_every_action(workspace: CliWorkspace) -> None:
    workspace.run("test", "//...", "--events=events.jsonl")
    trace = json.loads((workspace.root / "out/profile.json").read_text())
    spans = trace["traceEvents"]
    ran = [
        line["label"]
        for line in lines_of(workspace.root / "events.jsonl")
        if line["event"] == "action_started"
    ]
    assert sorted(span["name"] for span in spans) == sorted(ran)
    assert all(span["ph"] == "X" and span["dur"] >= 0 and span["ts"] >= 0 for span in spans)
    for slot in {span["tid"] for span in spans}:
        row = sorted((s["ts"], s["ts"] + s["dur"]) for s in spans if s["tid"] == slot)
        ends = [end for _, end in row]
        assert all(start >= end for (start, _), end in zip(row[1:], ends, strict=False))


def test_a_summary_is_one_table_whatever_a_kernel_prints(workspace: CliWorkspace) -> None:
    (workspace.root / "summary.md").write_text("what an earlier step wrote\n")
    workspace.run("test", "//...", "--summary=summary.md")
    text = (workspace.root / "summary.md").read_text()
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(text)
    kinds = [token.type for token in tokens]

    assert text.startswith("what an earlier step wrote\n")
    assert kinds.count("table_open") == 1
    assert kinds.count("tr_open") == 3
    assert kinds.count("fence") == 1
    (fence,) = [token for token in tokens if token.type == "fence"]
    assert "<script>" in fence.content
    assert "\x1b" not in text
    header = tokens[kinds.index("thead_open") : kinds.index("thead_close")]
    columns = [token.content for token in header if token.type == "inline"]
    assert columns == ["task", "compile", "correctness", "perf", "unseen", "speedup", "score"]


def test_a_summary_says_where_the_score_has_no_figure(workspace: CliWorkspace) -> None:
    workspace.run("test", "//...", "--gates=compile", "--summary=compiled.md")
    workspace.run("test", "//...", "--summary=scored.md")
    compiled, scored = ((workspace.root / f"{n}.md").read_text() for n in ("compiled", "scored"))

    assert "| task | compile |\n|---|---|\n" in compiled
    assert "| 2.00x ±8 % | 320.0 |" in scored
    assert "|  | ⏭️ SKIPPED |" in scored


@pytest.mark.parametrize("flag", ["--events", "--summary"])
def test_a_file_that_cannot_be_written_is_named(workspace: CliWorkspace, flag: str) -> None:
    ran = workspace.run("test", "//tasks/family0/t0", f"{flag}=absent/x")
    assert ran.code == 2
    assert f"{flag}: absent/x: No such file or directory" in ran.err
    assert "Traceback" not in ran.err
