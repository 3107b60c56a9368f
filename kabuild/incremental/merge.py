"""A build of what changed, and what was known of the rest, as one summary."""

from __future__ import annotations

from dataclasses import replace

from kabuild.incremental.recall import Recalled
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.pipeline import Summary
from kabuild.report.scoreboard import GateCell, TaskRow
from kabuild.store.memory import Remembered


def merge(summary: Summary, recalled: Recalled) -> Summary:
    """``summary`` with the rows, and the counts, of the packages that were not built."""
    known = [_row(task) for task in recalled.tasks()]
    table = tuple(sorted((*summary.table, *known), key=lambda row: row.label))
    own = {name for row in table for name in (row.label.package,)}
    again = sum(label.package not in own for label in summary.settled)
    totals = summary.totals
    return replace(
        summary,
        table=table,
        totals=replace(
            totals,
            cached=totals.cached + recalled.own_actions() + recalled.memory.actions - again,
            passed=totals.passed + sum(len(row.cells) for row in known),
        ),
    )


def _row(task: Remembered) -> TaskRow:
    label = Label.parse(task.label)
    return TaskRow(label, tuple(_cell(label, task, gate) for gate in task.gates))


def _cell(label: Label, task: Remembered, gate: str) -> GateCell:
    figures = {"speedup": task.speedup, "score": task.score}
    verdict = GateVerdict(gate, Verdict.PASS, data=figures if gate == "score" else {})
    return GateCell(gate, Settled(label.sub(gate), Outcome.DONE, cached=True, verdict=verdict))
