"""What counts in every figure: whether a trial was judged, and what one that failed is worth.

All that makes figures from trials takes these from here: the leaderboard, the comparison of two
agents, and the trials of ``kabuild test``.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from enum import Enum, unique

from kabuild.model.verdict import Verdict
from kabuild.report.evaluation import TaskResult

NO_GAIN = 1.0
"""The speedup that a trial which failed counts in every mean: it gained nothing, as under the
policy ``geomean``. It is never absent, and never 0, which no other trial could make up for."""

_SAID = frozenset(verdict.value for verdict in Verdict)
_AGAINST = frozenset({Verdict.FAIL.value, Verdict.REJECTED.value})


@unique
class Pace(Enum):
    """Whether a kernel is faster than its baseline, as far as its times can tell.

    FASTER where the whole 95 % interval is above 1, SLOWER where it is below, else UNSURE.
    """

    FASTER = "faster"
    SLOWER = "slower"
    UNSURE = "unsure"


def was_judged(words: Collection[str]) -> bool:
    """Whether a trial is decided, by a word for each gate that was asked for.

    It is when every gate has a verdict, or one said FAIL or REJECTED, which nothing can make good.
    Any other was stopped by the machine (INFRA) or a person (CANCELLED): it counts nowhere, and
    whoever gives a figure names it.
    """
    if _AGAINST.intersection(words):
        return True
    return bool(words) and _SAID.issuperset(words)


def is_judged(result: TaskResult) -> bool:
    """Whether a result counts, as ``was_judged`` has it."""
    return was_judged([str(said.get("verdict")) for said in result.deciding.values()])


def why_unjudged(result: TaskResult) -> str:
    """Why a result that was not judged was not: ``NO_DEVICE``, or ``INFRA`` where nobody knows."""
    for said in result.deciding.values():
        if said.get("verdict") not in _SAID:
            return str(said.get("reason") or said.get("verdict"))
    return "no gate was asked for"


def unjudged(results: Sequence[TaskResult]) -> dict[str, str]:
    """Why, by label, for those of ``results`` that were not judged; ``#2`` is the second trial."""
    return {
        result.task.in_trial(result.trial).short: why_unjudged(result)
        for result in results
        if not is_judged(result)
    }


def gain(speedup: float | None) -> float:
    """What a trial that was judged counts in a mean; ``speedup`` is None where it failed."""
    return NO_GAIN if speedup is None else speedup


def typical_gain(trials: Sequence[TaskResult]) -> float:
    """One figure for a task: the geometric mean over its judged trials."""
    return statistics.geometric_mean([gain(trial.speedup) for trial in trials])


def interval(result: TaskResult) -> tuple[float, float] | None:
    """Of the speedup: means of the ends of its configs' 95 % intervals; None where one has none."""
    ends = [(case.get("low"), case.get("high")) for case in result.cases]
    lows = [low for low, _ in ends if isinstance(low, int | float)]
    highs = [high for _, high in ends if isinstance(high, int | float)]
    if not ends or not len(lows) == len(highs) == len(ends):
        return None
    return statistics.fmean(lows), statistics.fmean(highs)


def pace(result: TaskResult) -> Pace:
    """What can be said of a result's speedup; UNSURE for one that failed or has no intervals."""
    ends = interval(result)
    if result.speedup is None or ends is None:
        return Pace.UNSURE
    low, high = ends
    return Pace.FASTER if low > 1.0 else Pace.SLOWER if high < 1.0 else Pace.UNSURE
