"""``--json``: the whole result for programs. The schema is documented in the README."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kabuild.report.scoreboard import TaskRow, Totals
from kabuild.report.trials import summarise_trials

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
) -> str:
    """One JSON object with ``targets`` (one entry per gate and trial) and ``totals``.

    ``agents`` has what each trial's agent says of itself; ``trials`` each task's figures, where
    it has several.
    """
    report = {
        "schema": SCHEMA,
        "kabuild": version,
        "platform": platform,
        "agent": agent,
        "targets": [entry for row in table for entry in _entries(row)],
        "agents": [{"task": str(row.label.in_trial(1)), **row.facts} for row in table if row.facts],
        "trials": [found.to_json() for found in summarise_trials(table)],
        "totals": asdict(counts),
        "seconds": round(seconds, 3),
        "exit_code": exit_code,
    }
    return json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False)


def _entries(row: TaskRow) -> list[dict[str, Any]]:
    return [
        {
            "label": str(cell.settled.label),
            "task": str(row.label.in_trial(1)),
            "trial": row.label.trial,
            "gate": cell.gate,
            "verdict": cell.word,
            "reason": cell.reason,
            "summary": cell.summary,
            "cached": cell.settled.cached,
            "hermetic": cell.hermetic,
            "seconds": round(cell.settled.seconds, 3),
            "key": cell.settled.key.hash if cell.settled.key else None,
            "speedup": row.figure("speedup") if cell.gate in {"perf", "score"} else None,
            "score": row.figure("score") if cell.gate == "score" else None,
        }
        for cell in row.cells
    ]
