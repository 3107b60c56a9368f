"""Reports as JSON with a schema, as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kabuild.base.printing import escaped
from kabuild.model.gate import Role, merged
from kabuild.model.speedup import NO_SPEEDUP
from kabuild.model.task_result import TaskResult
from kabuild.report.evaluation import Evaluation
from kabuild.report.judgement import WIDE, unjudged
from kabuild.report.leaderboard import LeaderboardRow, headings, leaderboard

SCHEMA = "kabuild/report/2"
"""Changes if a field changes its meaning or is removed; new fields do not change it."""

_MARKUP = re.compile(r"[\\`\[\]|]|(?<![0-9A-Za-z])[*_]|[*_](?![0-9A-Za-z])")
_FORMULA = re.compile(r"\s*[=+-]|\s*@(?![\w.-]+//)")

_WHICH = ("evaluation", "platform", "task", "family", "trial")
_FIGURES = ("reason", "speedup", "speedup_low", "speedup_high", "score", "policy")

FASTER = (
    "faster: right, and significantly faster (the whole 95 % interval is above 1); "
    "fast₁: right, and measured faster."
)


def render_json(evaluations: Sequence[Evaluation]) -> str:
    """``{schema, evaluations: [{name, ..., results: [...]}], leaderboard: [...]}``."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "evaluations": [_evaluation(item) for item in evaluations],
            "standings": [_leaderboard_row(item) for item in leaderboard(evaluations)],
        },
        indent=2,
    )


def render_csv(evaluations: Sequence[Evaluation]) -> str:
    """One line for each result: its name, the verdict of each default gate, and its figures."""
    text = io.StringIO()
    declared = merged(evaluation.declared for evaluation in evaluations)
    gates = [g.name for g in declared if g.usual and g.role is not Role.SCORE]
    writer = csv.DictWriter(text, [*_WHICH, *gates, *_FIGURES], lineterminator="\n")
    writer.writeheader()
    for evaluation in evaluations:
        for result in evaluation.results:
            row = _row(evaluation, result, gates)
            writer.writerow({name: _value(value) for name, value in row.items()})
    return text.getvalue()


def render_markdown(evaluations: Sequence[Evaluation]) -> str:
    """The leaderboard and a table of tasks, for an issue or a pull request."""
    named = ("evaluation", "on", "family")
    ranked = leaderboard(evaluations)
    shares = headings(ranked)
    figures = ("tasks", "trials", *shares, "geomean", "median")
    lines = [
        _line([*named, *figures, "faster", "fast₁"]),
        "|---" * len(named) + "|--:" * (len(figures) + 2) + "|",
        *(_ranked(row, shares) for row in ranked),
        "",
        FASTER,
        *_left_out(evaluations),
    ]
    lines += ["", "| task | " + " | ".join(_cell(item.name) for item in evaluations) + " |"]
    lines.append("|---" * (len(evaluations) + 1) + "|")
    for task, found in by_task(evaluations).items():
        cells = [", ".join(brief(result) for result in results) or "-" for results in found]
        lines.append(_line([task, *cells]))
    if any("~" in line for line in lines):
        lines += ["", WIDE]
    doubts = [_cell(f"{item.name}: {item.doubt}") for item in evaluations if item.doubt]
    return "\n".join([*lines, *(["", *doubts] if doubts else [])]) + "\n"


def _ranked(row: LeaderboardRow, columns: Sequence[str]) -> str:
    shares = (share(row.shares.get(column)) for column in columns)
    times = (str(one or "-") for one in (row.average, row.middle))
    fast = map(share, (row.faster, row.fast.get(1.0)))
    counts = (str(row.tasks), str(row.trials))
    return _line([row.evaluation, row.machine, row.family, *counts, *shares, *times, *fast])


def _left_out(evaluations: Sequence[Evaluation]) -> list[str]:
    """Trials that are excluded from all figures, one paragraph each."""
    found = []
    for item in evaluations:
        if missing := unjudged(item.results):
            told = ", ".join(f"{label} ({why})" for label, why in missing.items())
            found += ["", _cell(f"{item.name}: not judged, excluded from all figures: {told}")]
    return found


def by_task(evaluations: Sequence[Evaluation]) -> dict[str, list[list[TaskResult]]]:
    """For each task, the results of each evaluation, in the order of the evaluations."""
    found: dict[str, list[list[TaskResult]]] = {}
    for index, evaluation in enumerate(evaluations):
        for result in evaluation.results:
            row = found.setdefault(result.task, [[] for _ in evaluations])
            row[index].append(result)
    return dict(sorted(found.items()))


def brief(result: TaskResult) -> str:
    """A result in a word:

    its speedup, or the deciding gate with its reason, or why none decided.
    """
    if not result.judged:
        return f"not judged: {result.why_unjudged}"
    if result.measured:
        return str(result.measured)
    gate = result.problem
    return f"{gate.gate}: {gate.reason or gate.word}" if gate else "not measured"


def share(value: float | None) -> str:
    """``0.5`` as ``50 %``; ``-`` for None."""
    return "-" if value is None else f"{100 * value:.0f} %"


def times_faster(value: float | None) -> str:
    """``1.5`` as ``1.50x``; ``-`` for None."""
    return "-" if value is None else f"{value:.2f}x" if value < 100 else f"{value:.0f}x"


def _evaluation(item: Evaluation) -> dict[str, Any]:
    return {
        "name": item.name,
        "kabuild": item.kabuild,
        "platform": dict(item.platform),
        "request": dict(item.request),
        "source": item.source,
        "digest": item.digest,
        "doubt": item.doubt,
        "toolchains": [asdict(toolchain) for toolchain in item.toolchains],
        "results": [
            {
                **result.to_json(),
                "task": result.task,
                "family": result.family,
                "tier": result.tier,
                "gates": {name: gate.said for name, gate in result.gates.items()},
                "score": dict(result.figures),
                "agent": dict(result.agent),
                "keys": {name: gate.key for name, gate in result.gates.items() if gate.key},
            }
            for result in item.results
        ],
    }


def _leaderboard_row(row: LeaderboardRow) -> dict[str, Any]:
    told = asdict(row)
    shares = told.pop("shares")
    return {**shares, **told, "fast": {f"{p:g}": value for p, value in row.fast.items()}}


def _row(evaluation: Evaluation, result: TaskResult, gates: Sequence[str]) -> dict[str, Any]:
    problem = result.problem
    return {
        "evaluation": evaluation.name,
        "platform": evaluation.platform.get("name", ""),
        "task": result.task,
        "family": result.family,
        "trial": result.trial,
        **{gate: result.gates[gate].word if gate in result.gates else "" for gate in gates},
        "reason": problem.reason or problem.word if problem else "",
        **(result.measured.to_json() if result.measured else NO_SPEEDUP),
        "score": result.score,
        "policy": result.figures.get("policy"),
    }


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    """A name or a reason in Markdown. A bundle chose it, so it may be neither markup nor HTML."""
    text = " ".join(escaped(text).split())
    return _MARKUP.sub(r"\\\g<0>", text.replace("&", "&amp;").replace("<", "&lt;"))


def _value(value: Any) -> Any:
    """A value in CSV: no text is a formula of a spreadsheet. Labels may begin with ``@``."""
    if not isinstance(value, str):
        return value
    text = escaped(value)
    return f"'{text}" if _FORMULA.match(text) else text
