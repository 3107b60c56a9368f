"""The rows of a leaderboard: figures for each evaluation and family."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.report.evaluation import Evaluation
from kabuild.report.judgement import Pace, pace, typical_gain, unjudged

THRESHOLDS = (0.0, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
"""The thresholds p of fast_p."""

ALL = "all"

Trials = Sequence[TaskResult]
"""All trials of one task."""


@dataclass(frozen=True)
class LeaderboardRow:
    """The figures of one evaluation in one family of tasks.

    Every judged task stays in the denominator: a rejected or wrong one counts as 1.0x in
    ``geomean`` and ``median``, and as 0 in ``faster`` and ``fast``. Unjudged trials are
    excluded from all figures, and named. Each task counts once: with the geometric mean of its
    trials' speedups, and with the share of trials that are compiled, correct or fast.

    Attributes:
        machine: the platform, and its device if any. tasks, trials: how many were judged; a task
            may have several trials.
        unjudged: by label, why a trial was not judged.
        shares: by heading, the share of tasks that passed the gate which declares it, 0 to 1;
            None if that gate was not requested.
        geomean, median: of the middles of the speedups; None if times were not requested.
        geomean_low, geomean_high: the 95 % interval of ``geomean``, by the errors with which its
            times were measured; None if one of these is unknown.
        median_low, median_high: the medians of the lower and of the upper ends.
        measured: whether any trial has a speedup: else both say only that nothing was gained.
        faster: the share that is right and significantly faster than the baseline, by its whole
            interval; None without times or intervals.
        fast: by threshold p, the share that is right and measured faster than p times the
            baseline: fast_p, of the measured ratios alone.
    """

    evaluation: str
    machine: str
    family: str
    tasks: int
    trials: int
    unjudged: Mapping[str, str]
    shares: Mapping[str, float | None]
    geomean: float | None
    median: float | None
    faster: float | None
    fast: Mapping[float, float]
    geomean_low: float | None = None
    geomean_high: float | None = None
    median_low: float | None = None
    median_high: float | None = None
    measured: bool = True

    @property
    def average(self) -> Speedup | None:
        """The geometric mean with its interval; None if nothing was measured."""
        return self._shown(self.geomean, self.geomean_low, self.geomean_high)

    @property
    def middle(self) -> Speedup | None:
        """The median with its interval; None if nothing was measured."""
        return self._shown(self.median, self.median_low, self.median_high)

    def _shown(self, middle: float | None, low: float | None, high: float | None) -> Speedup | None:
        if middle is None or not self.measured:
            return None
        return Speedup.around(middle, low, high) if low and high else Speedup(middle)


def leaderboard(evaluations: Iterable[Evaluation]) -> list[LeaderboardRow]:
    """One row for each evaluation and family, and one for all families if there are several.

    Results of tier ``script`` have their own rows, and are not in the one for all.
    """
    found = []
    for evaluation in evaluations:
        families: dict[str, list[TaskResult]] = {}
        for result in evaluation.results:
            families.setdefault(result.group, []).append(result)
        declared = [result for result in evaluation.results if not result.tier]
        if len({result.group for result in declared}) > 1 or not families:
            found.append(_leaderboard_row(evaluation, ALL, declared))
        found += [_leaderboard_row(evaluation, name, part) for name, part in families.items()]
    return found


def _leaderboard_row(
    evaluation: Evaluation, family: str, results: Sequence[TaskResult]
) -> LeaderboardRow:
    judged = [result for result in results if result.judged]
    tasks = list(_by_task(judged).values())
    timed = any(result.timed or result.speedup for result in judged)
    gains = [typical_gain(trials) for trials in tasks] if timed else []
    mean = Speedup.geometric_mean(gains) if gains else None
    ends = [found for one in gains if (found := one.ends)]
    low, high = zip(*ends, strict=True) if gains and len(ends) == len(gains) else ((), ())
    vague = any(result.speedup and result.interval is None for result in judged)
    return LeaderboardRow(
        evaluation=evaluation.name,
        machine=evaluation.machine,
        family=family,
        tasks=len(tasks),
        trials=len(judged),
        unjudged=unjudged(results),
        shares={name: _passing(tasks, name) for name in _headings(evaluation)},
        geomean=mean.middle if mean else None,
        median=_median([one.middle for one in gains]),
        faster=_share(tasks, lambda r: pace(r) is Pace.FASTER) if timed and not vague else None,
        fast={p: _fast(tasks, p) for p in THRESHOLDS} if timed else {},
        geomean_low=mean.low if mean else None,
        geomean_high=mean.high if mean else None,
        median_low=_median(low),
        median_high=_median(high),
        measured=any(result.measured for result in judged),
    )


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _by_task(results: Iterable[TaskResult]) -> dict[str, list[TaskResult]]:
    found: dict[str, list[TaskResult]] = {}
    for result in results:
        found.setdefault(result.task, []).append(result)
    return found


def headings(rows: Iterable[LeaderboardRow]) -> list[str]:
    """The headings of all shares in ``rows``, in the order of judging."""
    return list(dict.fromkeys(heading for row in rows for heading in row.shares))


def _headings(evaluation: Evaluation) -> list[str]:
    return [gate.share for gate in evaluation.declared if gate.share]


def passing(result: TaskResult, heading: str) -> bool | None:
    """Whether a result passed the gate with ``heading``; None if it was not requested."""
    said = [gate.passed for gate in result.gates.values() if gate.declared.share == heading]
    return all(said) if said else None


def _passing(tasks: Sequence[Trials], heading: str) -> float | None:
    if all(passing(result, heading) is None for trials in tasks for result in trials):
        return None
    return _share(tasks, lambda one: bool(passing(one, heading)))


def _fast(tasks: Sequence[Trials], threshold: float) -> float:
    return _share(tasks, lambda result: (result.speedup or 0.0) > threshold)


def _share(tasks: Sequence[Trials], holds: Callable[[TaskResult], bool]) -> float:
    """The mean over tasks of the share of their trials."""
    return statistics.fmean(statistics.fmean(map(holds, trials)) for trials in tasks)
