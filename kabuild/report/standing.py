"""What the tasks of one family come to: the rows of a leaderboard."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kabuild.report.evaluation import Evaluation, TaskResult
from kabuild.report.judgement import Pace, interval, is_judged, pace, typical_gain, unjudged

THRESHOLDS = (0.0, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
"""Speedups p at which fast_p is given."""

ALL = "all"

Trials = Sequence[TaskResult]
"""All trials of one task."""


@dataclass(frozen=True)
class Standing:
    """One evaluation in one family of tasks.

    No task that was judged leaves the denominator: one that was refused or was wrong counts 1.0x
    in ``geomean``, ``mean`` and ``median``, and nothing in ``faster`` and ``fast``. What was not
    judged is in no figure, and named. Each task counts once: with the geometric mean of its
    trials' speedups, and with the share of them that is compiled, right or fast.

    Attributes:
        machine: the platform, and the device where it has one.
        tasks, trials: how many were judged; one task may have several trials.
        unjudged: why not, by label, for the trials that were not.
        compiled, correct, unseen: shares, 0 to 1; None where nobody asked for that gate.
        geomean, mean, median: of the speedups; None where nobody asked for times.
        faster: the share that is right and surely faster than the baseline, by its whole
            interval; None where nobody asked for times, or these have no intervals.
        fast: by threshold p, the share that is right and measured faster than p times the
            baseline: fast_p, of the measured ratios alone.
    """

    evaluation: str
    machine: str
    family: str
    tasks: int
    trials: int
    unjudged: Mapping[str, str]
    compiled: float | None
    correct: float | None
    unseen: float | None
    geomean: float | None
    mean: float | None
    median: float | None
    faster: float | None
    fast: Mapping[float, float]


def standings(evaluations: Iterable[Evaluation]) -> list[Standing]:
    """One row for each evaluation and family, and one for all families where there are several."""
    found = []
    for evaluation in evaluations:
        families: dict[str, list[TaskResult]] = {}
        for result in evaluation.results:
            families.setdefault(result.family, []).append(result)
        if len(families) != 1:
            found.append(_standing(evaluation, ALL, evaluation.results))
        found += [_standing(evaluation, name, part) for name, part in families.items()]
    return found


def _standing(evaluation: Evaluation, family: str, results: Sequence[TaskResult]) -> Standing:
    judged = [result for result in results if is_judged(result)]
    tasks = list(_by_task(judged).values())
    timed = any("perf" in result.gates or result.speedup for result in judged)
    gains = [typical_gain(trials) for trials in tasks] if timed else []
    vague = any(result.speedup and interval(result) is None for result in judged)
    return Standing(
        evaluation=evaluation.name,
        machine=evaluation.machine,
        family=family,
        tasks=len(tasks),
        trials=len(judged),
        unjudged=unjudged(results),
        compiled=_passing(tasks, "compile"),
        correct=_passing(tasks, "correctness"),
        unseen=_passing(tasks, "unseen"),
        geomean=statistics.geometric_mean(gains) if gains else None,
        mean=statistics.fmean(gains) if gains else None,
        median=statistics.median(gains) if gains else None,
        faster=_share(tasks, lambda r: pace(r) is Pace.FASTER) if timed and not vague else None,
        fast={p: _fast(tasks, p) for p in THRESHOLDS} if timed else {},
    )


def _by_task(results: Iterable[TaskResult]) -> dict[str, list[TaskResult]]:
    found: dict[str, list[TaskResult]] = {}
    for result in results:
        found.setdefault(result.task.short, []).append(result)
    return found


def _passing(tasks: Sequence[Trials], gate: str) -> float | None:
    if not any(gate in result.gates for trials in tasks for result in trials):
        return None
    return _share(tasks, lambda result: result.passed(gate))


def _fast(tasks: Sequence[Trials], threshold: float) -> float:
    return _share(tasks, lambda result: (result.speedup or 0.0) > threshold)


def _share(tasks: Sequence[Trials], holds: Callable[[TaskResult], bool]) -> float:
    """Of the tasks, each of which counts with the share of its trials."""
    return statistics.fmean(statistics.fmean(map(holds, trials)) for trials in tasks)
