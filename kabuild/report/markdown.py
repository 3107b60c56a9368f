"""``--summary=FILE``: the scoreboard as Markdown, for a pull request or a job's page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kabuild.report.failures import printable
from kabuild.report.scoreboard import TaskRow, Totals

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
    for row in table:
        for cell in row.problems:
            verdict = cell.settled.verdict
            text = printable(verdict.detail if verdict else cell.settled.message)[:_DETAIL]
            title = printable(f"{cell.settled.label}: {cell.word} {cell.reason}: {cell.summary}")
            lines += ["", f"**{_plain(title)}**", *(["", *_fenced(text)] if text else [])]
    return "\n".join([*lines, "", ""])


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
