"""What went wrong, why, and the command that shows it again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.model.verdict import Verdict
from kabuild.report.causes import Cause, causes
from kabuild.report.scoreboard import GateCell, TaskRow

_MOST_LINES, _MOST_COLUMNS = 40, 400
"""What is printed of one detail: a candidate may have written any amount into it."""


def render_failures(
    table: Sequence[TaskRow],
    settled: Iterable[Settled],
    *,
    command: str = "test",
    rerun: Sequence[str] = (),
) -> list[str]:
    """One paragraph per cause that actions broke of, per task that did not pass for another
    reason, and per gate that said no but was not asked for: it is the cause of something that was.

    ``command`` is the one of kabuild that judged, and ``rerun`` are the flags that the same
    verdict needs, such as ``--solution=x.hip``.
    """
    items = list(settled)
    asked = {cell.settled.label for row in table for cell in row.cells}
    problems = [GateCell("", item) for item in items if item.label not in asked]
    problems = [cell for cell in problems if cell.verdict in {Verdict.FAIL, Verdict.REJECTED}]
    problems += [cell for row in table for cell in row.problems]
    broken = causes(items)
    told = {action.label for cause in broken for action in cause.actions}
    said = [cell for cell in problems if cell.verdict and cell.settled.stopped_by not in told]
    return [*map(_broken, broken), *(_gate_problem(cell, command, rerun) for cell in said)]


def printable(text: str) -> str:
    """``text`` without control characters: a candidate may have written any into it."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text.expandtabs())


def _broken(cause: Cause) -> str:
    item = cause.first
    what = "could not be judged" if item.outcome is Outcome.INFRA else "failed"
    head = f"{cause.title}: {what}"
    others = [f"  {cause.others}"] if cause.others else []
    return "\n".join([head, *_indented(item.message), *others])


def _gate_problem(cell: GateCell, command: str, rerun: Sequence[str]) -> str:
    settled, verdict = cell.settled, cell.settled.verdict
    assert verdict is not None
    head = f"{settled.label}: {cell.said}"
    repeated = verdict.detail.startswith(verdict.summary)
    shown = settled.message if repeated else cell.summary
    summary = f": {printable(shown)}" if shown else ""
    lines = [f"{head}{summary}", *_indented(verdict.detail)]
    lines.append(f"  rerun it with: {_command(command, settled.label, rerun)}")
    return "\n".join(lines)


def _indented(text: str) -> list[str]:
    lines = printable(text).rstrip().splitlines()
    shown = [f"  {_cut(line)}" for line in lines[:_MOST_LINES]]
    left_out = len(lines) - len(shown)
    return [*shown, f"  ... and {left_out} more lines"] if left_out else shown


def _cut(line: str) -> str:
    return line if len(line) <= _MOST_COLUMNS else f"{line[:_MOST_COLUMNS]}..."


def _command(command: str, label: Label, flags: Sequence[str]) -> str:
    afresh = () if command == "build" else ("--nocache_test_results",)
    return " ".join([f"kabuild {command}", *flags, *afresh, str(label)])
