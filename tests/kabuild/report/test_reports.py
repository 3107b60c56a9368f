"""Reports are folds over results: nothing is lost, nothing is made up."""

from __future__ import annotations

import io
import json
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kabuild.model.digest import Digest
from kabuild.model.event import (
    ActionExecuting,
    ActionSettled,
    ActionStarted,
    BuildFinished,
    BuildStarted,
    Warned,
)
from kabuild.model.label import Label
from kabuild.model.result import ActionResult, Outcome, Settled
from kabuild.model.task_result import TaskResult
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.report.event_log import EventLog
from kabuild.report.failures import broken, render_failures
from kabuild.report.json_report import render_json
from kabuild.report.junit import render_junit
from kabuild.report.markdown import render_summary
from kabuild.report.profile import Profile
from kabuild.report.progress import LiveProgress, PlainProgress
from kabuild.report.scoreboard import render_table, render_totals, task_results, totals
from kabuild.report.table import coloured
from tests.testkit.evaluations import gate_named

TASK = Label("tasks/softmax", "softmax")
GATES = ("compile", "correctness", "score")


def settle(gate: str, verdict: Verdict, reason: str = "", **data: float) -> Settled:
    """A gate that ran."""
    judged = GateVerdict(gate, verdict, reason, "why" if reason else "", "line 1\nline 2", data)
    return Settled(
        TASK.sub(gate),
        Outcome.SKIPPED if verdict is Verdict.SKIPPED else Outcome.DONE,
        key=Digest.of(gate.encode()),
        result=ActionResult(0),
        seconds=1.5,
        verdict=judged,
    )


def table_of(*settled: Settled, gates: tuple[str, ...] = GATES) -> tuple[TaskResult, ...]:
    """The scoreboard of one task."""
    tasks = {TASK: tuple((gate_named(gate), TASK.sub(gate)) for gate in gates)}
    return task_results(tasks, {item.label: item for item in settled})


PASSED = (
    settle("compile", Verdict.PASS),
    settle("correctness", Verdict.PASS),
    settle("score", Verdict.PASS, speedup=2.0, score=320.0),
)
FAILED = (
    settle("compile", Verdict.PASS),
    settle("correctness", Verdict.FAIL, "WRONG_RESULT"),
    settle("score", Verdict.FAIL, "WRONG_RESULT", score=20.0),
)


@pytest.mark.parametrize(
    ("ends", "shown"),
    [((1.5, 2.6), "2.00x ±32 %"), ((1.99, 2.01), "2.00x ±0.5 %"), ((2.0, 9.0), "~2.00x")],
)
def test_a_figure_is_shown_with_its_uncertainty(ends: tuple[float, float], shown: str) -> None:
    low, high = ends
    figures = {"speedup": 2.0, "speedup_low": low, "speedup_high": high}
    score = settle("score", Verdict.PASS, "", **figures)
    table = table_of(*PASSED[:2], score)

    assert shown in render_table(table)
    assert ("\n~: " in render_table(table)) is shown.startswith("~")
    assert shown in render_summary(table, totals(table, ()), ())
    speedup = table[0].measured
    assert speedup is not None
    assert speedup.to_json() == figures


@pytest.mark.parametrize("detail", ["", "{}: more", "other"])
def test_a_candidate_links_to_nothing_and_mentions_nobody_in_a_summary(detail: str) -> None:
    said = "https://evil.example www.evil.example @org/team fixes #1 ``` <img src=x>"
    gate = replace(
        table_of(*FAILED)[0].gates["correctness"], summary=said, detail=detail.format(said)
    )
    table = [replace(table_of(*FAILED)[0], gates={"correctness": gate})]

    text = render_summary(table, totals(table, ()), ())

    outside, inside, _ = text.split("````")
    assert "evil" not in outside
    assert "@" not in outside
    assert inside.strip().startswith(said)


def test_a_passing_task_shows_its_figures() -> None:
    text = render_table(table_of(*PASSED))

    assert text.splitlines() == [
        "task             compile  correctness  speedup  score",
        "//tasks/softmax  PASS     PASS         2.00x    320.0",
    ]


def test_how_an_agent_failed_stands_in_its_line() -> None:
    facts = {"state": "timed_out", "message": f"it said\n\x1b[1m{'much ' * 99}"}
    (_, line, more) = render_table([replace(table_of(*PASSED)[0], agent=facts)]).splitlines()
    note = line.partition("320.0  ")[2]

    assert note.startswith("agent: timed out: it said \\u001b[1mmuch much")
    assert (note[-7:], len(note) <= 100) == ("much...", True)
    assert more.endswith("finish said: out/tasks/softmax/softmax.agent/transcript.jsonl")


def test_colours_surround_words_and_keep_columns() -> None:
    text = render_table(table_of(*FAILED), coloured)

    assert "\x1b[31mFAIL       \x1b[0m" in text


def test_a_task_without_results_stays_on_the_board() -> None:
    row = table_of()[0]

    assert [gate.word for gate in row.gates.values()] == ["CANCELLED"] * 3
    assert not row.passed


def test_cached_rows_say_so_only_when_every_gate_was() -> None:
    cached = [replace(item, cached=True) for item in PASSED]

    assert table_of(*cached)[0].cached
    assert not table_of(cached[0], PASSED[1], cached[2])[0].cached


def test_totals_count_gates_and_actions_apart() -> None:
    counts = totals(table_of(*FAILED), FAILED)

    assert (counts.executed, counts.cached) == (3, 0)
    assert (counts.passed, counts.failed) == (1, 2)
    assert render_totals(counts, 4.5) == (
        "3 actions: 0 cached, 3 executed; gates: 1 passed, 2 failed; 4.50 s"
    )


def test_actions_that_broke_are_counted_once_and_beside_the_others() -> None:
    crashed = Settled(TASK.sub("agent"), Outcome.INFRA, Digest.of(b"key"), message="exit code 3")
    follows = replace(crashed, label=TASK.sub("compile"), stopped_by=crashed.label)
    missing = Settled(TASK.sub("baseline"), Outcome.FAILED, message="no file")
    ended = replace(missing, label=TASK.sub("ended"), result=ActionResult(1))
    settled = [crashed, follows, missing, ended, replace(PASSED[0], cached=True)]
    line = render_totals(totals((), settled), 1.0, broken=broken(settled))
    assert line == "4 actions: 1 cached, 1 executed, 2 broken; 1.00 s"


def test_a_machine_failure_is_no_verdict() -> None:
    broken = Settled(TASK.sub("compile"), Outcome.INFRA, message="no space left")
    stopped = replace(broken, label=TASK.sub("score"), stopped_by=broken.label)
    row = table_of(broken, stopped)[0]

    assert row.broken
    assert row.gates["compile"].verdict is None
    assert totals([row], [broken, stopped]).infra == 2
    (told,) = render_failures([row], [broken, stopped])
    assert "could not be judged\n  no space left" in told


def test_one_cause_is_told_once_and_two_are_two() -> None:
    """Not once for each trial of each task; what differs by the number of a request is the same."""
    words = ("key refused (req_0123456789ab)", "key refused (req_ba9876543210)", "no space left")
    labels = [TASK.in_trial(number).sub("agent") for number in range(1, 7)]
    said = [*(f"{label}: {words[n % 2]}" for n, label in enumerate(labels[:5])), words[2]]
    broken = [
        Settled(label, Outcome.INFRA, message=text)
        for label, text in zip(labels, said, strict=True)
    ]

    first, second = render_failures([], broken)

    assert first.splitlines() == [
        "//tasks/softmax:softmax.agent and 4 more: could not be judged",
        "  //tasks/softmax:softmax.agent: key refused (req_0123456789ab)",
        f"  also affected: {labels[1]}, {labels[2]}, {labels[3]} and 1 more",
    ]
    assert second == "//tasks/softmax:softmax.agent#6: could not be judged\n  no space left"


def test_a_failure_names_reason_detail_and_rerun_command() -> None:
    (text,) = render_failures(table_of(*FAILED), FAILED, rerun=("--agent=none",))

    assert text.splitlines() == [
        "//tasks/softmax:softmax.correctness: FAIL (WRONG_RESULT): why",
        "  | line 1",
        "  | line 2",
        (
            "  rerun it with: kabuild test --agent=none --nocache_test_results "
            "//tasks/softmax:softmax.correctness"
        ),
    ]


def test_what_was_asked_for_by_name_is_said_beside_the_gate_that_decided() -> None:
    """The sanitizer's finding is why results are wrong; that nothing else failed is not said."""
    settled = (*FAILED, settle("sanitize", Verdict.FAIL, "DATA_RACE"))

    texts = render_failures(table_of(*settled, gates=(*GATES, "sanitize")), settled)

    heads = [text.partition("\n")[0].rpartition(":softmax.")[2] for text in texts]
    assert heads == ["correctness: FAIL (WRONG_RESULT): why", "sanitize: FAIL (DATA_RACE): why"]


def test_a_candidate_cannot_write_to_the_terminal() -> None:
    """What a candidate printed is shown without escape sequences."""
    verdict = GateVerdict("compile", Verdict.FAIL, "CRASH", "\x1b[2Jgone", "a\x1b]0;t\x07b\tc")
    hostile = replace(PASSED[0], verdict=verdict)

    (text,) = render_failures(table_of(hostile, *PASSED[1:]), [])

    assert "\\u001b[2Jgone" in text
    assert not any(ord(c) < 32 and c != "\n" for c in text)


def test_json_has_one_entry_per_gate_and_the_totals() -> None:
    table = table_of(*PASSED)
    report = json.loads(
        render_json(
            table,
            totals(table, PASSED),
            version="1",
            platform="cpu",
            agent="//a:expert",
            seconds=1.23456,
            exit_code=0,
        )
    )

    score = report["targets"][2]
    assert [entry["gate"] for entry in report["targets"]] == list(GATES)
    assert (score["speedup"], score["score"], score["verdict"]) == (2.0, 320.0, "PASS")
    assert report["totals"]["passed"] == 3
    assert report["seconds"] == 1.235


def test_junit_is_well_formed_whatever_a_candidate_prints() -> None:
    hostile = settle("correctness", Verdict.REJECTED, "CRASH\x00")
    document = render_junit(table_of(PASSED[0], hostile, settle("score", Verdict.SKIPPED)))

    suite = ElementTree.fromstring(document).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    problem = suite.find("testcase/failure")
    assert problem is not None
    assert problem.get("type") == "CRASH\\u0000"


def test_profile_has_a_span_for_each_action() -> None:
    profile = Profile()
    profile.emit(BuildStarted(1, "cpu", 10.0))
    profile.emit(ActionStarted(PASSED[0].label, "Compile", 3, 10.5))
    profile.emit(ActionSettled(PASSED[0], "Compile", 12.0))

    (span,) = json.loads(profile.render())["traceEvents"]
    assert (span["ts"], span["dur"], span["tid"]) == (500_000, 1_500_000, 3)


def test_plain_progress_is_silent_about_cached_actions() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.emit(BuildStarted(2, "cpu", 0.0))
    progress.emit(ActionSettled(replace(PASSED[0], cached=True), "Compile", 1.0))
    progress.emit(ActionSettled(FAILED[1], "Correctness", 2.0))
    progress.emit(Warned("careful"))

    assert stream.getvalue().splitlines() == [
        "[2/2] Correctness //tasks/softmax:softmax.correctness FAIL WRONG_RESULT 1.50 s",
        "warning: careful",
    ]


def test_what_runs_for_long_is_named_in_a_pipe_too() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream, patience=0.02)
    progress.emit(BuildStarted(2, "cpu", 0.0))
    progress.emit(ActionExecuting(Label("t", "slow"), 0.0))
    deadline = time.monotonic() + 10
    while "runs for" not in stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    progress.emit(BuildFinished(interrupted=False, at=1.0))

    assert stream.getvalue().startswith("[0/2] //t:slow runs for 0 s\n")
    time.sleep(0.1)
    told = stream.getvalue()
    time.sleep(0.1)
    assert stream.getvalue() == told


def test_progress_counts_anew_for_each_of_several_builds() -> None:
    """A report of three agents is three builds, and no action is the 27th of nine."""
    stream = io.StringIO()
    plain, live = PlainProgress(stream), LiveProgress(Terminal(), StoppedClock())
    for _ in range(2):
        for event in (BuildStarted(1, "cpu", 0.0), ActionSettled(FAILED[1], "Correctness", 2.0)):
            plain.emit(event)
            live.emit(event)

    assert [line.partition(" ")[0] for line in stream.getvalue().splitlines()] == ["[1/1]"] * 2
    assert "[1/1]" in live.__rich__()


def test_the_log_has_a_line_for_each_event_of_a_build_that_ran(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "out/build.log")
    log.emit(ActionExecuting(FAILED[1].label, 1.0))
    log.emit(ActionSettled(FAILED[1], "Correctness", 2.0))
    log.emit(Warned("careful"))
    log.emit(BuildFinished(interrupted=False, at=3.0))

    lines = [json.loads(line) for line in (tmp_path / "out/build.log").read_text().splitlines()]
    assert [line["event"] for line in lines] == [
        "action_executing",
        "action_settled",
        "warning",
        "finished",
    ]
    assert (lines[1]["verdict"], lines[1]["reason"]) == ("FAIL", "WRONG_RESULT")


def test_a_build_from_the_cache_leaves_the_log_alone(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "build.log")
    log.emit(ActionSettled(replace(PASSED[0], cached=True), "Compile", 1.0))
    log.emit(BuildFinished(interrupted=False, at=3.0))

    assert not (tmp_path / "build.log").exists()


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


class StoppedClock:
    """A clock that stands still."""

    def monotonic(self) -> float:
        return 5.0

    def wall(self) -> float:
        return 5.0


def test_live_progress_starts_only_when_something_runs() -> None:
    stream = Terminal()
    progress = LiveProgress(stream, StoppedClock())
    progress.emit(BuildStarted(2, "cpu", 0.0))
    progress.emit(ActionStarted(TASK.sub("compile"), "Compile", 0, 1.0))
    progress.emit(ActionSettled(replace(PASSED[0], cached=True), "Compile", 1.0))
    assert stream.getvalue() == ""

    progress.emit(ActionStarted(TASK.sub("perf"), "Perf", 0, 2.0))
    progress.emit(ActionExecuting(TASK.sub("perf"), 2.0))
    shown = progress.__rich__()
    progress.emit(BuildFinished(interrupted=False, at=6.0))

    assert "[1/2] 1 running" in shown
    assert "Perf //tasks/softmax:softmax.perf 3.0 s" in shown


def test_a_flake_is_shown_wherever_its_verdict_is() -> None:
    flake = replace(
        settle("correctness", Verdict.FAIL, "WRONG_RESULT"), message="flaky: 1 x PASS, 1 x FAIL"
    )
    table = table_of(PASSED[0], flake)

    (paragraph,) = render_failures(table, [flake])
    entries = json.loads(
        render_json(
            table,
            totals(table, [flake]),
            version="1",
            platform="cpu",
            agent="",
            seconds=1.0,
            exit_code=3,
        )
    )["targets"]

    assert "FAIL (WRONG_RESULT): flaky: 1 x PASS, 1 x FAIL" in paragraph
    assert entries[1]["summary"] == "flaky: 1 x PASS, 1 x FAIL; why"
    assert b'message="flaky: 1 x PASS, 1 x FAIL; why"' in render_junit(table)
