"""``--json``: the whole result for programs. The schema is documented in the README."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kabuild.model.result import Outcome
from kabuild.model.verdict import Verdict
from kabuild.report.scoreboard import GateCell, TaskRow, Totals
from kabuild.report.trials import summarise_trials
from kabuild.report.views import shown_at

SCHEMA = 1


def render_json(
    table: Sequence[TaskRow],
    counts: Totals,
    *,
    version: str,
    platform: str,
    agent: str,
    seconds: float,
    exit_code: int,
    built: Sequence[GateCell] = (),
) -> str:
    """One JSON object with ``targets`` (one entry per gate and trial) and ``totals``.

    ``built`` is what was to be made and not judged: ``targets`` has an entry for each, too; what
    is no gate has none in its cell.
    ``agents`` has what each trial's agent says of itself; ``trials`` each task's figures, where
    it has several.
    """
    report = {
        "schema": SCHEMA,
        "kabuild": version,
        "platform": platform,
        "agent": agent,
        "targets": [
            *(entry for row in table for entry in _entries(row)),
            *map(_built, built),
        ],
        "agents": [{"task": str(row.label.in_trial(1)), **row.facts} for row in table if row.facts],
        "trials": [found.to_json() for found in summarise_trials(table)],
        "totals": asdict(_with(counts, built)),
        "seconds": round(seconds, 3),
        "exit_code": exit_code,
    }
    return json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False)


def _with(counts: Totals, built: Sequence[GateCell]) -> Totals:
    """``counts`` with the gates among what was built."""
    gates = [cell for cell in built if cell.gate]
    words = [cell.verdict for cell in gates]
    return replace(
        counts,
        passed=counts.passed + words.count(Verdict.PASS),
        failed=counts.failed + words.count(Verdict.FAIL),
        rejected=counts.rejected + words.count(Verdict.REJECTED),
        skipped=counts.skipped + words.count(Verdict.SKIPPED),
        infra=counts.infra + sum(cell.settled.outcome is Outcome.INFRA for cell in gates),
    )


def _entries(row: TaskRow) -> list[dict[str, Any]]:
    return [
        {
            "label": str(cell.settled.label),
            "task": str(row.label.in_trial(1)),
            "trial": row.label.trial,
            "gate": cell.gate,
            "verdict": cell.word,
            **_circumstances(cell),
            "speedup": row.figure("speedup") if cell.gate in {"perf", "score"} else None,
            "score": row.figure("score") if cell.gate == "score" else None,
        }
        for cell in row.cells
    ]


def _built(cell: GateCell) -> dict[str, Any]:
    """What was made: how that ended, what it says if it is a gate, and where it is shown."""
    settled = cell.settled
    shown = shown_at(Path("out"), settled)
    return {
        "label": str(settled.label),
        "trial": settled.label.trial,
        "gate": cell.gate or None,
        "outcome": cell.made.value,
        "verdict": cell.word if cell.gate else None,
        **_circumstances(cell),
        "output": str(shown) if shown else None,
    }


def _circumstances(cell: GateCell) -> dict[str, Any]:
    """What the entries of gates that judged and of what was made have in common."""
    settled = cell.settled
    return {
        "reason": cell.reason,
        "summary": cell.summary,
        "cached": settled.cached,
        "hermetic": cell.hermetic,
        "seconds": round(settled.seconds, 3),
        "key": settled.key.hash if settled.key else None,
    }
