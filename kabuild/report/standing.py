"""What the tasks of one family come to: the rows of a leaderboard."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kabuild.report.evaluation import Evaluation, TaskResult

THRESHOLDS = (0.0, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
"""Speedups p at which fast_p is given."""

ALL = "all"


@dataclass(frozen=True)
class Standing:
    """One evaluation in one family of tasks.

    No task leaves the denominator: one that was refused or was wrong counts 1.0x in ``geomean``,
    ``mean`` and ``median``, and nothing in ``fast``.

    Attributes:
        machine: the platform, and the device where it has one.
        tasks: results, with each trial for itself.
        compiled, correct, unseen: shares of them, 0 to 1; None where that gate was not judged.
        geomean, mean, median: of the speedups; None where none was measured.
        fast: by threshold p, the share that is right and faster than p times the baseline.
    """

    evaluation: str
    machine: str
    family: str
    tasks: int
    compiled: float | None
    correct: float | None
    unseen: float | None
    geomean: float | None
    mean: float | None
    median: float | None
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
    measured = any("perf" in result.gates for result in results)
    gains = [result.speedup or 1.0 for result in results] if measured else []
    return Standing(
        evaluation=evaluation.name,
        machine=evaluation.machine,
        family=family,
        tasks=len(results),
        compiled=_share(results, "compile"),
        correct=_share(results, "correctness"),
        unseen=_share(results, "unseen"),
        geomean=statistics.geometric_mean(gains) if gains else None,
        mean=statistics.fmean(gains) if gains else None,
        median=statistics.median(gains) if gains else None,
        fast={p: _faster(results, p) for p in THRESHOLDS} if measured else {},
    )


def _share(results: Sequence[TaskResult], gate: str) -> float | None:
    if not any(gate in result.gates for result in results):
        return None
    return sum(result.passed(gate) for result in results) / len(results)


def _faster(results: Sequence[TaskResult], threshold: float) -> float:
    fast = sum((result.speedup or 0.0) > threshold for result in results)
    return fast / len(results)
