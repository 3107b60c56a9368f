"""``--summary=FILE``: the scoreboard as Markdown, for a pull request or a job's page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kabuild.report.causes import Cause, causes
from kabuild.report.failures import printable
from kabuild.report.scoreboard import GateCell, TaskRow, Totals

_MARKS = {"PASS": "✅", "FAIL": "❌", "REJECTED": "⛔", "SKIPPED": "⏭️"}
_DETAIL = 2000
_SCORE = "score"
"""A gate whose verdict follows from the others': its column shows the figure instead."""


def render_summary(table: Sequence[TaskRow], counts: Totals) -> str:
    """A table of tasks and gates, totals, and what decided where something did not pass."""
    asked = list(dict.fromkeys(cell.gate for row in table for cell in row.cells))
    gates = [gate for gate in asked if gate != _SCORE]
    figures = ["speedup", "score"] if _SCORE in asked else []
    lines = [
        "### kabuild",
        "",
        _totals(counts),
        "",
        _line(["task", *gates, *figures]),
        f"|{'---|' * (len(gates) + 1)}{'--:|' * len(figures)}",
        *(_line([*_cells(row, gates), *(_figures(row) if figures else [])]) for row in table),
    ]
    problems = [cell for row in table for cell in row.problems]
    broken = {cell.broken.label: cell.broken for cell in problems if cell.broken}
    for cause in causes(replace(item, stopped_by=None) for item in broken.values()):
        lines += _paragraph(*_told(cause))
    for cell in problems:
        if not cell.broken:
            lines += _paragraph(*_said(cell))
    return "\n".join([*lines, "", ""])


def _told(cause: Cause) -> tuple[str, str]:
    """What broke, and all that is known of why, once however many it stopped."""
    item = cause.first
    title = f"{cause.title}: {item.outcome.value.upper()} {item.fault}".rstrip()
    return title, "\n".join(filter(None, (item.message, cause.others)))


def _said(cell: GateCell) -> tuple[str, str]:
    """What a gate said: in one line, and in several, unless these begin with it."""
    title = f"{cell.settled.label}: {cell.word} {cell.reason}".rstrip()
    repeated = cell.detail.startswith(cell.summary)
    return title if repeated else f"{title}: {cell.summary}", cell.detail


def _paragraph(title: str, text: str) -> list[str]:
    text = printable(text)[:_DETAIL]
    return ["", f"**{_plain(printable(title))}**", *(["", *_fenced(text)] if text else [])]


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


def _cells(row: TaskRow, gates: Sequence[str]) -> list[str]:
    words = {cell.gate: cell.word for cell in row.cells}
    return [row.label.short, *(_marked(words[gate]) if gate in words else "" for gate in gates)]


def _figures(row: TaskRow) -> list[str]:
    """Speedup and score; in the score's place its gate's verdict where it has no figure."""
    speedup, score = row.figure("speedup"), row.figure("score")
    word = next((cell.word for cell in row.cells if cell.gate == _SCORE), "")
    return [
        "" if speedup is None else f"{speedup:.2f}x",
        _marked(word) if score is None else f"{score:.1f}",
    ]


def _marked(word: str) -> str:
    return f"{_MARKS.get(word, '⚠️')} {word}" if word else ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    """Text that Markdown leaves alone."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def _fenced(text: str) -> list[str]:
    """A code block that its content cannot end, however many backticks it has."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *text.splitlines(), fence]
