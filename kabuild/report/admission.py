"""What ``validate`` prints: one line a task, and the evidence where one is rejected."""

from __future__ import annotations

from collections.abc import Sequence

from kabuild.report.scoreboard import GateCell, TaskRow
from kabuild.report.table import Style, plain

_HEADER = ("task", "verdict", "reason", "seconds")


def render_admission(table: Sequence[TaskRow], style: Style = plain) -> str:
    """The verdict on each task, with the seconds that it took this time or once before."""
    body = [(row, row.cells[0]) for row in table]
    lines = [_HEADER, *(_texts(row, cell) for row, cell in body)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADER))]
    words = ["", *(cell.word for _, cell in body)]
    return "\n".join(
        "  ".join(
            style(text.ljust(width), word if index == 1 else "")
            for index, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line, word in zip(lines, words, strict=True)
    )


def _texts(row: TaskRow, cell: GateCell) -> tuple[str, str, str, str]:
    result = cell.settled.result
    once = f"cached, {result.seconds:.1f} once" if result else "cached"
    seconds = once if cell.settled.cached else f"{cell.settled.seconds:.1f}"
    return row.label.short, cell.word, cell.reason or "-", seconds
