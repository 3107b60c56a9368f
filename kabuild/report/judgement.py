"""Rules for all figures: the value of a failed trial, and when a kernel is faster.

They hold for the leaderboard, for the comparison of two agents, and for trials of ``kabuild test``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from enum import Enum, unique

from kabuild.model.task_result import TaskResult

NO_GAIN = 1.0
"""The speedup of a failed trial in every mean:

it gained nothing, as under the policy ``geomean``. It is never left out, and never 0, which no
other trial could make up for.
"""

SIGMAS = 1.96
"""Standard deviations of a normal distribution in half of a 95 % interval."""


@unique
class Pace(Enum):
    """Whether a kernel is faster than its baseline, according to its times.

    FASTER if the whole 95 % interval is above 1, SLOWER if it is below, else UNSURE.
    """

    FASTER = "faster"
    SLOWER = "slower"
    UNSURE = "unsure"


def unjudged(results: Sequence[TaskResult]) -> dict[str, str]:
    """By label, why some of ``results`` were not judged; ``#2`` is the second trial."""
    return {result.label.short: result.why_unjudged for result in results if not result.judged}


def gain(speedup: float | None) -> float:
    """The value of a judged trial in a mean; ``speedup`` is None if it failed."""
    return NO_GAIN if speedup is None else speedup


def typical_gain(trials: Sequence[TaskResult]) -> float:
    """One figure for a task: the geometric mean over its judged trials."""
    return statistics.geometric_mean([gain(trial.speedup) for trial in trials])


def spread(trials: Sequence[TaskResult]) -> float | None:
    """Standard deviation of the logarithm of ``typical_gain``, by the intervals of its trials.

    A failed trial has no uncertainty. None if an interval is unknown.
    """
    ends = [trial.measured.ends for trial in trials if trial.measured]
    widths = [math.log(high / low) / 2 for low, high in filter(None, ends)]
    if len(widths) < len(ends):
        return None
    return math.sqrt(sum(width * width for width in widths)) / len(trials) / SIGMAS


def pace(result: TaskResult) -> Pace:
    """The pace of a result; UNSURE if it failed or has no intervals."""
    if result.interval is None:
        return Pace.UNSURE
    low, high = result.interval
    return Pace.FASTER if low > 1.0 else Pace.SLOWER if high < 1.0 else Pace.UNSURE
