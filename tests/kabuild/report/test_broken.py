"""Why nothing was judged is in every report, once, and with the name of what broke."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from kabuild.model.action import Action
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.model.task_result import TaskResult
from kabuild.report.json_report import render_json
from kabuild.report.junit import render_junit
from kabuild.report.markdown import render_summary
from kabuild.report.scoreboard import task_results, totals
from kabuild.scheduler.gating import stopped
from tests.testkit.actions import command
from tests.testkit.evaluations import gate_named

CAUSE = "session.py: cannot start my-agent: its sandbox has no such program"
CRASHED = f"{{}} gave no result: exit code 3\n  {CAUSE}"
NO_SECRET = "{} needs the secret KEY, which is not set\n  export KEY=..."
Build = tuple[tuple[TaskResult, ...], list[Settled]]
FAILED = "the command ended well but did not make 'x'"


def _build(message: str, outcome: Outcome = Outcome.INFRA, tasks: int = 1) -> Build:
    """Tasks whose agents broke, and a gate of each, as the scheduler stops it."""
    settled: dict[Label, Settled] = {}
    gates = {}
    for number in range(tasks):
        solve = command(f"t{number}.agent")
        judge = command(f"t{number}.compile", inputs={"x": solve.output("result")}, gate="compile")
        broken = Settled(solve.label, outcome, message=message.format(solve.label), fault="WHY")
        settled[solve.label] = broken
        settled[judge.label] = _stopped(judge, broken)
        gates[Label("t", f"t{number}")] = ((gate_named("compile"), judge.label),)
    return task_results(gates, settled), list(settled.values())


def _stopped(action: Action, by: Settled) -> Settled:
    stop = stopped(action, {str(by.label): by})
    assert stop
    return Settled(action.label, stop.outcome, message=stop.because, stopped_by=stop.by)


def _summary(table: tuple[TaskResult, ...]) -> str:
    more = {"version": "", "platform": "", "agent": "", "seconds": 0.0, "exit_code": 36}
    text = render_json(table, totals(table, []), **more)  # type: ignore[arg-type]
    return str(json.loads(text)["targets"][0]["summary"])


@pytest.mark.parametrize(
    ("message", "outcome", "summary"),
    [
        (CRASHED, Outcome.INFRA, f"//t:t0.agent gave no result: exit code 3; {CAUSE}"),
        (
            NO_SECRET,
            Outcome.INFRA,
            "//t:t0.agent needs the secret KEY, which is not set; export KEY=...",
        ),
        (FAILED, Outcome.FAILED, f"//t:t0.agent: {FAILED}"),
        (
            "exit code 1\n" + "".join(f"{n}{'x' * 300}\n" for n in range(9)),
            Outcome.FAILED,
            f"//t:t0.agent: exit code 1; 0{'x' * 199}...; ...; 7{'x' * 199}...; 8{'x' * 199}...",
        ),
    ],
)
def test_the_name_is_there_once_and_the_cause_too(
    message: str, outcome: Outcome, summary: str
) -> None:
    table, _ = _build(message, outcome)

    assert _summary(table) == summary
    (problem,) = ElementTree.fromstring(render_junit(table)).findall("*/testcase/*")
    assert problem.get("message") == summary
    assert (problem.text or "").count("//t:t0.agent") == 1
    last = message.format("").splitlines()[-1].strip()
    assert last in (problem.text or "")


@pytest.mark.parametrize(
    ("message", "outcome"), [(CRASHED, Outcome.INFRA), (FAILED, Outcome.FAILED)]
)
def test_markdown_says_each_cause_once(message: str, outcome: Outcome) -> None:
    table, settled = _build(message, outcome, tasks=3)

    text = render_summary(table, totals(table, []), settled)

    head = f"**//t:t0.agent and 2 more: {outcome.value.upper()} WHY**"
    _, told = text.split(head)
    for line in message.format("//t:t0.agent").splitlines():
        assert text.count(line.strip()) == 1, text
        assert line in told
    assert "also affected: //t:t1.agent, //t:t2.agent" in told
