"""What the section of one result shows."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from kabuild.report.document import brief, times_faster
from kabuild.report.evaluation import Evaluation, TaskResult
from kabuild.report.judgement import Pace, interval, is_judged, pace
from kabuild.report.page import plots
from kabuild.report.page.resources import Resources, resources
from kabuild.report.page.roofs import Machine, Timed

_DIFF_LINES = 3000
_KINDS = {Pace.FASTER: "win", Pace.SLOWER: "loss", Pace.UNSURE: "tie"}


@dataclass(frozen=True)
class Entry:
    """One result with what its section shows.

    ``number`` is the place of its evaluation among all, whose colour it has. ``timed`` are its
    configs by name, where they were timed on ``machine``.
    """

    number: int
    evaluation: Evaluation
    result: TaskResult
    word: str
    intervals: Markup | None
    resources: Resources | None
    machine: Machine | None
    timed: Mapping[str, Timed]
    diff: str

    @property
    def kind(self) -> str:
        """A class of the style sheet: not judged, refused, and what is sure of its speedup."""
        if not is_judged(self.result):
            return "INFRA"
        if not self.result.correct:
            return "FAIL"
        return _KINDS[pace(self.result)]

    @property
    def hint(self) -> str:
        """Within what its speedup lies; empty where that is unknown."""
        ends = interval(self.result)
        if self.result.speedup is None or ends is None:
            return ""
        return f"{times_faster(ends[0])} to {times_faster(ends[1])}"


def entries(
    evaluations: Sequence[Evaluation],
    found: Sequence[Sequence[TaskResult]],
    machines: Sequence[Machine],
) -> list[list[Entry]]:
    """What each evaluation has of one task, in the order of the evaluations."""
    return [
        [_entry(number, evaluations[number], result, machines) for result in results]
        for number, results in enumerate(found)
    ]


def in_order(config: str, dims: Sequence[str]) -> str:
    """The name of a config with its dims as they were declared; unseen ones have them sorted."""
    words = config.split(" ")
    places = [index for index, word in enumerate(words) if word.partition("=")[0] in dims]
    ordered = sorted((words[i] for i in places), key=lambda w: dims.index(w.partition("=")[0]))
    for index, word in zip(places, ordered, strict=True):
        words[index] = word
    return " ".join(words)


def _entry(
    number: int, evaluation: Evaluation, result: TaskResult, machines: Sequence[Machine]
) -> Entry:
    drawn = [item for case in result.cases if (item := _interval(case))]
    title = f"speedup of {result.task.short} by config"
    machine = next((m for m in machines if number in m.numbers), None)
    timed = machine.of_task(result.task.short) if machine else ()
    return Entry(
        number=number,
        evaluation=evaluation,
        result=result,
        word=brief(result),
        intervals=plots.intervals(title, drawn) if drawn else None,
        resources=resources(result.gates.get("compile", {})),
        machine=machine,
        timed={
            item.config: item
            for item in timed
            if (item.number, item.trial) == (number, result.trial)
        },
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
