"""Reports for programs and for pasting: JSON with a schema, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kabuild.report.evaluation import Evaluation, TaskResult
from kabuild.report.judgement import is_judged, unjudged, why_unjudged
from kabuild.report.standing import Standing, standings

SCHEMA = "kabuild/report/1"
"""Changes when a field changes its meaning or goes; new fields may come at any time."""

COLUMNS = (
    *("evaluation", "platform", "task", "family", "trial", "compile", "correctness", "perf"),
    *("unseen", "reason", "speedup", "score", "policy"),
)


FASTER = (
    "faster: right, and surely faster than the baseline (the whole 95 % interval is above 1); "
    "fast₁: right, and measured faster."
)


def render_json(evaluations: Sequence[Evaluation]) -> str:
    """``{schema, evaluations: [{name, ..., results: [...]}], standings: [...]}``."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "evaluations": [_evaluation(item) for item in evaluations],
            "standings": [_standing(item) for item in standings(evaluations)],
        },
        indent=2,
        ensure_ascii=False,
    )


def render_csv(evaluations: Sequence[Evaluation]) -> str:
    """One line for each result, with ``COLUMNS``."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for evaluation in evaluations:
        for result in evaluation.results:
            writer.writerow(_row(evaluation, result))
    return text.getvalue()


def render_markdown(evaluations: Sequence[Evaluation]) -> str:
    """The leaderboard and a table of tasks, for an issue or a pull request."""
    named = ("evaluation", "on", "family")
    figures = ("tasks", "trials", "compiled", "correct", "unseen", "geomean", "median")
    ranked = standings(evaluations)
    lines = [
        _line([*named, *figures, "faster", "fast₁"]),
        "|---" * len(named) + "|--:" * (len(figures) + 2) + "|",
        *map(_ranked, ranked),
        "",
        FASTER,
        *_left_out(evaluations),
    ]
    lines += ["", "| task | " + " | ".join(_cell(item.name) for item in evaluations) + " |"]
    lines.append("|---" * (len(evaluations) + 1) + "|")
    for task, found in by_task(evaluations).items():
        cells = [", ".join(brief(result) for result in results) or "-" for results in found]
        lines.append(_line([task, *cells]))
    doubts = [f"{item.name}: {item.doubt}" for item in evaluations if item.doubt]
    return "\n".join([*lines, *(["", *doubts] if doubts else [])]) + "\n"


def _ranked(row: Standing) -> str:
    shares = map(share, (row.compiled, row.correct, row.unseen))
    times = map(times_faster, (row.geomean, row.median))
    fast = map(share, (row.faster, row.fast.get(1.0)))
    counts = (str(row.tasks), str(row.trials))
    return _line([row.evaluation, row.machine, row.family, *counts, *shares, *times, *fast])


def _left_out(evaluations: Sequence[Evaluation]) -> list[str]:
    """What is in no figure, by name, each in a paragraph of its own."""
    found = []
    for item in evaluations:
        if missing := unjudged(item.results):
            told = ", ".join(f"{label} ({why})" for label, why in missing.items())
            found += ["", _cell(f"{item.name}: not judged, and in no figure: {told}")]
    return found


def by_task(evaluations: Sequence[Evaluation]) -> dict[str, list[list[TaskResult]]]:
    """For each task, the results of each evaluation, in the order of the evaluations."""
    found: dict[str, list[list[TaskResult]]] = {}
    for index, evaluation in enumerate(evaluations):
        for result in evaluation.results:
            row = found.setdefault(result.task.short, [[] for _ in evaluations])
            row[index].append(result)
    return dict(sorted(found.items()))


def brief(result: TaskResult) -> str:
    """A result in a word: its speedup, or the gate that decided and why, or why none could."""
    if not is_judged(result):
        return f"not judged: {why_unjudged(result)}"
    if result.speedup is not None:
        return times_faster(result.speedup)
    gate, reason = decisive(result)
    return f"{gate}: {reason}" if gate else "not measured"


def decisive(result: TaskResult) -> tuple[str, str]:
    """The first gate that did not say PASS, and its reason; empty where all did."""
    for gate, said in result.gates.items():
        if said.get("verdict") != "PASS":
            return gate, str(said.get("reason") or said.get("verdict"))
    return "", ""


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
                "task": result.task.short,
                "family": result.family,
                "trial": result.trial,
                "speedup": result.speedup,
                "gates": dict(result.gates),
                "score": dict(result.score),
                "agent": dict(result.agent),
                "keys": dict(result.keys),
            }
            for result in item.results
        ],
    }


def _standing(row: Standing) -> dict[str, Any]:
    return {**asdict(row), "fast": {f"{p:g}": value for p, value in row.fast.items()}}


def _row(evaluation: Evaluation, result: TaskResult) -> dict[str, Any]:
    return {
        "evaluation": evaluation.name,
        "platform": evaluation.platform.get("name", ""),
        "task": result.task.short,
        "family": result.family,
        "trial": result.trial,
        **{
            gate: result.gates.get(gate, {}).get("verdict", "")
            for gate in ("compile", "correctness", "perf", "unseen")
        },
        "reason": decisive(result)[1],
        "speedup": result.speedup,
        "score": result.score.get("score"),
        "policy": result.score.get("policy"),
    }


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
