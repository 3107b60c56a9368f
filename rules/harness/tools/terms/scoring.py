"""Scores from speedups, under named policies.

A policy turns a result (compiled, correct, the ratios baseline time / candidate time, one per
config) into one number. All policies fail closed: a task without usable times counts as no speedup
and is never left out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FAST_THRESHOLDS = (0.0, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
V4_MARGIN = 1.05


class TimesError(ValueError):
    """Times from which no speedup can be computed."""


@dataclass(frozen=True)
class Outcome:
    """The gates' results for one task.

    Attributes:
        compiled: the compile gate passed.
        correct: every gate that judges results passed.
        ratios: baseline time / candidate time, per config, as counted: ``Speedup.counted``, or the
            lower ends if the interval of their mean is too wide; empty if nothing counts.
    """

    compiled: bool
    correct: bool
    ratios: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """The arithmetic mean of the ratios; 0 if there are none."""
        return statistics.fmean(self.ratios) if self.correct and self.ratios else 0.0

    @property
    def geomean(self) -> float:
        """The geometric mean of the ratios; 0 if there are none."""
        return statistics.geometric_mean(self.ratios) if self.correct and self.ratios else 0.0


def ratios(
    configs: Sequence[str], baseline: Mapping[str, Any], candidate: Mapping[str, Any]
) -> tuple[float, ...]:
    """Baseline time / candidate time for each of ``configs``, in that order.

    Raises TimesError unless both sides have exactly these configs, each with a finite positive
    number. A missing time is never treated as neutral.
    """
    if not configs:
        raise TimesError("no configs were timed")
    for side, times in (("baseline", baseline), ("candidate", candidate)):
        if missing := [name for name in configs if name not in times]:
            raise TimesError(f"the {side} has no time for {missing[0]!r}")
        if extra := [name for name in times if name not in configs]:
            raise TimesError(f"the {side} has a time for {extra[0]!r}, which is not a config")
        for name in configs:
            _check_time(side, name, times[name])
    return tuple(_ratio(name, baseline[name], candidate[name]) for name in configs)


def _ratio(name: str, baseline: float, candidate: float) -> float:
    ratio = baseline / candidate
    if not math.isfinite(ratio) or ratio <= 0:
        raise TimesError(f"the times of {name!r} have no finite ratio")
    return ratio


def _check_time(side: str, name: str, value: Any) -> None:
    usable = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value > 0
    )
    if not usable:
        raise TimesError(f"the {side}'s time for {name!r} is {value!r}")


def aka(outcome: Outcome) -> float:
    """AgentKernelArena's points: 20 for compiling, 100 for correct, 100 x mean speedup."""
    if not outcome.compiled:
        return 0.0
    return 20.0 + (100.0 + 100.0 * outcome.mean if outcome.correct else 0.0)


def aka_v4(outcome: Outcome) -> float:
    """AgentKernelArena's bounded score from its version 0.4: max(0, 1 - 1.05 / speedup)."""
    return max(0.0, 1.0 - V4_MARGIN / outcome.mean) if outcome.mean > 0 else 0.0


def fast(outcome: Outcome) -> dict[str, float]:
    """For each threshold p: 1 if the task is correct and faster than p, else 0.

    Averaged over tasks, this is KernelBench's fast_p.
    """
    return {f"{p:g}": float(outcome.mean > p) for p in FAST_THRESHOLDS}


def fast_p(outcome: Outcome) -> float:
    """``fast`` at p = 1: correct and faster than the baseline."""
    return fast(outcome)["1"]


def geomean(outcome: Outcome) -> float:
    """The geometric mean of the ratios. A failed task counts 1.0: nothing gained."""
    return outcome.geomean or 1.0


POLICIES: Mapping[str, Callable[[Outcome], float]] = {
    "aka": aka,
    "aka-v4": aka_v4,
    "fast_p": fast_p,
    "geomean": geomean,
}
