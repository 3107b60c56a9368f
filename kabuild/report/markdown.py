"""``--summary=FILE``: the scoreboard as Markdown, for a pull request or a job's page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kabuild.base.printing import escaped
from kabuild.model.gate import Role
from kabuild.model.gate_result import GateResult
from kabuild.model.result import Settled
from kabuild.model.task_result import TaskResult
from kabuild.report.failures import Cause, causes
from kabuild.report.scoreboard import Totals, columns

_MARKS = {"PASS": "✅", "FAIL": "❌", "REJECTED": "⛔", "SKIPPED": "⏭️"}
_DETAIL = 2000


def render_summary(table: Sequence[TaskResult], counts: Totals, settled: Iterable[Settled]) -> str:
    """A table of tasks and gates, the totals, and the failures.

    ``settled`` are the actions of the build; failed ones may have stopped gates.
    """
    gates = columns(table)
    figures = ["speedup", "score"] if any(one.scored for one in table) else []
    lines = [
        "### kabuild",
        "",
        _totals(counts),
        "",
        _line(["task", *gates, *figures]),
        f"|{'---|' * (len(gates) + 1)}{'--:|' * len(figures)}",
        *(_line([*_cells(one, gates), *(_figures(one) if figures else [])]) for one in table),
    ]
    problems = [gate for result in table for gate in result.problems]
    broken = causes(settled)
    told = {action.label for cause in broken for action in cause.actions}
    for cause in broken:
        if {action.label for action in cause.actions} & {gate.cause for gate in problems}:
            lines += _paragraph(*_told(cause))
    for gate in problems:
        if gate.cause not in told:
            lines += _paragraph(*_said(gate))
    return "\n".join([*lines, "", ""])


def _told(cause: Cause) -> tuple[str, str]:
    """The root causes of failures, each once, with details."""
    item = cause.first
    title = f"{cause.title}: {item.outcome.value.upper()} {item.fault}".rstrip()
    return title, "\n".join(filter(None, (item.message, cause.others)))


def _said(gate: GateResult) -> tuple[str, str]:
    """A gate's verdict; its summary and, if that adds something, its detail.

    A candidate may have chosen words of both, so they stand where nothing is a link or a mention.
    """
    title = f"{gate.label}: {gate.word} {gate.reason}".rstrip()
    if gate.detail.startswith(gate.headline):
        return title, gate.detail
    return title, "\n".join(filter(None, (gate.headline, gate.beyond_headline)))


def _paragraph(title: str, text: str) -> list[str]:
    text = escaped(text)[:_DETAIL]
    return ["", f"**{_plain(title)}**", *(["", *_fenced(text)] if text else [])]


def _totals(counts: Totals) -> str:
    gates = {
        "passed": counts.passed,
        "failed": counts.failed,
        "rejected": counts.rejected,
        "skipped": counts.skipped,
        "not judged": counts.infra,
    }
    told = ", ".join(f"{count} {word}" for word, count in gates.items() if count)
    return f"Gates: {told or 'none'}. Actions: {counts.executed} executed, {counts.cached} cached."


def _cells(one: TaskResult, gates: Sequence[str]) -> list[str]:
    words = [one.gates[gate].word if gate in one.gates else "" for gate in gates]
    return [one.label.short, *map(_marked, words)]


def _figures(one: TaskResult) -> list[str]:
    """Speedup and score; without a score, the verdict of its gate."""
    word = next((g.word for g in one.gates.values() if g.declared.role is Role.SCORE), "")
    return [
        str(one.measured or ""),
        _marked(word) if one.score is None else f"{one.score:.1f}",
    ]


def _marked(word: str) -> str:
    return f"{_MARKS.get(word, '⚠️')} {word}" if word else ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    """Text, escaped for Markdown."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(escaped(text).split())


def _fenced(text: str) -> list[str]:
    """A code block that its content cannot end, whatever backticks it has."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *text.splitlines(), fence]
