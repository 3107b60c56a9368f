"""From evaluations to the page."""

from __future__ import annotations

import base64
import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kabuild.report.document import brief, by_task, share, times_faster
from kabuild.report.evaluation import Evaluation, TaskResult
from kabuild.report.page import plots
from kabuild.report.standing import standings

_DIFF_LINES = 3000
_TEXT = 20000


@dataclass(frozen=True)
class Entry:
    """One result with what its section shows."""

    evaluation: Evaluation
    result: TaskResult
    word: str
    intervals: Markup | None
    diff: str

    @property
    def kind(self) -> str:
        """A class of the style sheet: right and not slower, right and slower, or refused."""
        if not self.result.correct:
            return "FAIL"
        return "SLOW" if (self.result.speedup or 1.0) < 1.0 else "PASS"


def render_page(evaluations: Sequence[Evaluation], *, title: str) -> str:
    """One HTML file. What comes from kernels and agents is text in it and never code."""
    environment = Environment(
        loader=PackageLoader("kabuild.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "share": share,
        "times": times_faster,
        "nanoseconds": nanoseconds,
        "anchor": anchor,
        "clip": lambda text: text if len(text) <= _TEXT else f"{text[:_TEXT]}\n[...]",
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True),
    }
    style = _source(environment, "style.css")
    script = _source(environment, "script.js")
    tasks = by_task(evaluations)
    return environment.get_template("page.html").render(
        title=title,
        evaluations=evaluations,
        standings=standings(evaluations),
        curve=_curve(evaluations),
        roofline=_roofline(evaluations),
        tasks={task: _entries(evaluations, found) for task, found in tasks.items()},
        gates=_gates(evaluations),
        style=Markup(style),  # noqa: S704 - ours
        script=Markup(script),  # noqa: S704 - ours
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def nanoseconds(value: float | None) -> str:
    """A time in a unit that fits."""
    if value is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} ns"


def anchor(label: str) -> str:
    """A label as an element's id."""
    return "".join(c if c.isalnum() else "-" for c in label).strip("-")


def _source(environment: Environment, name: str) -> str:
    assert environment.loader
    return environment.loader.get_source(environment, name)[0]


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _gates(evaluations: Sequence[Evaluation]) -> list[str]:
    found: dict[str, None] = {}
    for evaluation in evaluations:
        for result in evaluation.results:
            found |= dict.fromkeys(result.gates)
    return list(found)


def _entries(
    evaluations: Sequence[Evaluation], found: Sequence[Sequence[TaskResult]]
) -> list[list[Entry]]:
    return [
        [_entry(evaluation, result) for result in results]
        for evaluation, results in zip(evaluations, found, strict=True)
    ]


def _entry(evaluation: Evaluation, result: TaskResult) -> Entry:
    drawn = [item for case in result.cases if (item := _interval(case))]
    title = f"speedup of {result.task.short} by config"
    return Entry(
        evaluation=evaluation,
        result=result,
        word=brief(result),
        intervals=plots.intervals(title, drawn) if drawn else None,
        diff=_diff(result),
    )


def _interval(case: Mapping[str, Any]) -> plots.Interval | None:
    found = [case.get(name) for name in ("speedup", "low", "high")]
    numbers = [float(x) for x in found if isinstance(x, int | float) and x > 0]
    if len(numbers) < len(found):
        return None
    return plots.Interval(str(case.get("config", "")), *numbers)


def _diff(result: TaskResult) -> str:
    if not result.candidate:
        return ""
    lines = difflib.unified_diff(
        result.baseline.splitlines(), result.candidate.splitlines(), "baseline", "candidate", "", ""
    )
    found = [line.rstrip("\n") for line in lines]
    if len(found) > _DIFF_LINES:
        found = [*found[:_DIFF_LINES], f"[{len(found) - _DIFF_LINES} more lines]"]
    return "\n".join(found)


def _curve(evaluations: Sequence[Evaluation]) -> Markup | None:
    whole: dict[str, Mapping[float, float]] = {}
    for row in standings(evaluations):
        if row.fast:
            whole.setdefault(row.evaluation, row.fast)
    return plots.curves("fast_p by evaluation", whole) if whole else None


def _roofline(evaluations: Sequence[Evaluation]) -> Markup | None:
    points: list[plots.Point] = []
    best = 0.0
    for number, evaluation in enumerate(evaluations):
        for result in evaluation.results:
            for case in result.cases:
                moved, done, time = (case.get(name) for name in ("bytes", "flops", "candidate_ns"))
                if moved and done and time:
                    name = f"{evaluation.name} {result.task.short} {case.get('config')}"
                    points.append(plots.Point(name, done / moved, done / time * 1e9, number))
                    best = max(best, moved / time * 1e9)
    return plots.roofline("roofline of all timed configs", points, best) if points else None
