"""``--json``: the whole result for programs. The schema is documented in ``docs/results.md``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kabuild.model.gate import Role
from kabuild.model.gate_result import GateResult
from kabuild.model.speedup import NO_SPEEDUP
from kabuild.model.task_result import TaskResult
from kabuild.model.verdict import Verdict
from kabuild.report.scoreboard import Totals, count_gates
from kabuild.report.trials import summarise_trials

SCHEMA = 1

Made = tuple[GateResult, Path | None]
"""A built target, and the path of its outputs."""

_WITH_SPEEDUP = frozenset({Role.TIMES, Role.SCORE})


def render_json(
    table: Sequence[TaskResult],
    counts: Totals,
    *,
    version: str,
    platform: str,
    agent: str,
    seconds: float,
    exit_code: int,
    built: Sequence[Made] = (),
) -> str:
    """One JSON object with ``targets`` (one entry per gate and trial) and ``totals``.

    ``built`` are targets that are built, not judged: ``targets`` has an entry for each, too.
    ``agents`` has the facts of each trial's agent; ``trials`` the figures of tasks with several
    trials.
    """
    gates = (made for made, _ in built if made.gate)
    report = {
        "schema": SCHEMA,
        "kabuild": version,
        "platform": platform,
        "agent": agent,
        "targets": [
            *(entry for result in table for entry in _judged(result)),
            *(_built(*made) for made in built),
        ],
        "agents": [{"task": str(one.label.in_trial(1)), **one.agent} for one in table if one.agent],
        "trials": [found.to_json() for found in summarise_trials(table)],
        "totals": asdict(count_gates(gates, counts)),
        "seconds": round(seconds, 3),
        "exit_code": exit_code,
    }
    return json.dumps(report, indent=2, allow_nan=False)


def outcome_of(made: GateResult) -> str:
    """The outcome of a built target; a gate that did not pass has failed."""
    if made.failed:
        return "failed"
    return "done" if made.verdict is Verdict.PASS else made.word.lower()


def _judged(result: TaskResult) -> list[dict[str, Any]]:
    whole = result.to_json()
    speedup = {name: whole[name] for name in NO_SPEEDUP}
    return [
        {
            "label": gate["label"],
            "task": whole["task"],
            "trial": whole["trial"],
            **gate,
            **(speedup if result.gates[name].declared.role in _WITH_SPEEDUP else NO_SPEEDUP),
            "score": whole["score"] if result.gates[name].declared.role is Role.SCORE else None,
        }
        for name, gate in whole["gates"].items()
    ]


def _built(made: GateResult, shown: Path | None) -> dict[str, Any]:
    return {
        "label": str(made.label),
        "trial": made.label.trial,
        "gate": made.gate or None,
        "outcome": outcome_of(made),
        **{name: value for name, value in made.to_json().items() if name not in {"label", "gate"}},
        "verdict": made.word if made.gate else None,
        "output": str(shown) if shown else None,
    }
