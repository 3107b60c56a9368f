"""What the section of one result shows."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from kabuild.model.figure import positive
from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.report.evaluation import Evaluation
from kabuild.report.exports import brief, times_faster
from kabuild.report.judgement import Pace, pace
from kabuild.report.page import plots
from kabuild.report.page.counted import Counted, counted
from kabuild.report.page.profiled import Profiled, profiled
from kabuild.report.page.resources import Resources, resources
from kabuild.report.page.roofs import Machine, Timed

_DIFF_LINES = 3000
_QUADRANTS = ("both_pass", "opt_improvement", "opt_regression", "both_fail")
_KINDS = {Pace.FASTER: "win", Pace.SLOWER: "loss", Pace.UNSURE: "tie"}


@dataclass(frozen=True)
class Times:
    """One timed config: nanoseconds of a call, their ratio, and its 95 % interval; None: unknown.

    ``timed`` are its rates, on the machine of its entry.
    """

    config: str
    baseline: float | None
    candidate: float | None
    speedup: float | None
    low: float | None
    high: float | None
    timed: Timed | None

    @property
    def shown(self) -> str:
        """The speedup with its uncertainty; a dash if unknown."""
        return str(Speedup(self.speedup, self.low, self.high)) if self.speedup else "-"


@dataclass(frozen=True)
class Entry:
    """One result with what its section shows.

    ``number`` is the place of its evaluation among all, whose colour it has. ``machine`` is None
    where no rates are known. ``quadrants`` counts unseen configs by the sides that pass them.
    """

    number: int
    evaluation: Evaluation
    result: TaskResult
    word: str
    intervals: Markup | None
    resources: Resources | None
    counted: Counted | None
    profiled: Profiled | None
    machine: Machine | None
    times: tuple[Times, ...]
    quadrants: Mapping[str, int]
    unseen: Sequence[Mapping[str, Any]]
    diff: str

    @property
    def kind(self) -> str:
        """A class of the style sheet: not judged, refused, and what is sure of its speedup."""
        if not self.result.judged:
            return "INFRA"
        if not self.result.correct:
            return "FAIL"
        return _KINDS[pace(self.result)]

    @property
    def id(self) -> str:
        """An address on a page that stays: the digest of its bundle, and a number after trial 1."""
        trial = self.result.trial
        return self.evaluation.digest + (f"-{trial}" if trial > 1 else "")

    @property
    def hint(self) -> str:
        """The interval of its speedup; empty if unknown."""
        ends = self.result.interval
        if ends is None:
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
    machine = next((item for item in machines if number in item.numbers), None)
    times = tuple(_times(case, number, result, machine) for case in result.cases)
    drawn = [
        plots.Interval(item.config, item.speedup, item.low, item.high)
        for item in times
        if item.speedup and item.low and item.high
    ]
    title = f"speedup of {result.task} by config"
    return Entry(
        number=number,
        evaluation=evaluation,
        result=result,
        word=brief(result),
        intervals=plots.intervals(title, drawn) if drawn else None,
        resources=next(filter(None, map(resources, _told(result))), None),
        counted=next(filter(None, map(counted, _told(result))), None),
        profiled=next(filter(None, map(profiled, _told(result))), None),
        machine=machine if any(item.timed for item in times) else None,
        times=times,
        quadrants=_quadrants(result.figures.get("quadrants")),
        unseen=next((_mappings(d.get("cases")) for d in _told(result) if "quadrants" in d), []),
        diff=_diff(result),
    )


def _times(
    case: Mapping[str, Any], number: int, result: TaskResult, machine: Machine | None
) -> Times:
    config = str(case.get("config", ""))
    rates = machine.of_task(result.task) if machine else ()
    same = (number, result.trial, config)
    timed = next((item for item in rates if (item.number, item.trial, item.config) == same), None)
    return Times(
        config=config,
        baseline=positive(case, "baseline_ns"),
        candidate=positive(case, "candidate_ns"),
        speedup=positive(case, "speedup"),
        low=positive(case, "low"),
        high=positive(case, "high"),
        timed=timed,
    )


def _quadrants(told: object) -> Mapping[str, int]:
    """All four, or nothing: a bundle may hold anything."""
    counts = told if isinstance(told, Mapping) else {}
    found = {name: counts[name] for name in _QUADRANTS if isinstance(counts.get(name), int)}
    return found if len(found) == len(_QUADRANTS) else {}


def _told(result: TaskResult) -> list[Mapping[str, Any]]:
    """What its gates wrote, in the order of judging."""
    return [gate.data for gate in result.gates.values()]


def _mappings(told: object) -> Sequence[Mapping[str, Any]]:
    return [item for item in told if isinstance(item, Mapping)] if isinstance(told, list) else []


def _diff(result: TaskResult) -> str:
    """Empty if there is nothing to compare with.

    The time that it takes grows with the square of the lines, whose number is a candidate's to
    choose: so the first ones are compared.
    """
    before, after = result.evidence.baseline, result.evidence.candidate
    if not before or not after:
        return ""
    old, new = before.splitlines(), after.splitlines()
    lines = difflib.unified_diff(
        old[:_DIFF_LINES], new[:_DIFF_LINES], "baseline", "candidate", "", ""
    )
    found = [line.rstrip("\n") for line in lines]
    if len(found) > _DIFF_LINES:
        found = [*found[:_DIFF_LINES], f"[{len(found) - _DIFF_LINES} more lines]"]
    if max(len(old), len(new)) > _DIFF_LINES:
        found.append(f"[only the first {_DIFF_LINES} lines of each are compared]")
    return "\n".join(found)
