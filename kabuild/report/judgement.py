"""Rules for all figures: the value of a failed trial, and when a kernel is faster.

They hold for the leaderboard, for the comparison of two agents, and for trials of ``kabuild test``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, unique

from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult

NO_GAIN = 1.0
"""The speedup of a failed trial in every mean:

it gained nothing, as under the policy ``geomean``. It is never left out, and never 0, which no
other trial could make up for.
"""

WIDE = "~: the 95 % interval is too wide for a figure; this is its lower end"
"""What a report says below figures with such a mark."""

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


def gain(trial: TaskResult) -> Speedup:
    """What a judged trial counts in a mean; a failed one gained nothing, which is certain."""
    return trial.measured or Speedup(NO_GAIN, NO_GAIN, NO_GAIN)


def typical_gain(trials: Sequence[TaskResult]) -> Speedup:
    """One figure for a task: the geometric mean over its judged trials, with its interval."""
    return Speedup.geometric_mean([gain(trial) for trial in trials])


def pace(result: TaskResult) -> Pace:
    """The pace of a result; UNSURE if it failed or has no intervals."""
    if result.interval is None:
        return Pace.UNSURE
    low, high = result.interval
    return Pace.FASTER if low > 1.0 else Pace.SLOWER if high < 1.0 else Pace.UNSURE
