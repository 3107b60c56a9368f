"""The speedup of a part over PyTorch in the model's own shapes, from the cases of its task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kabuild.model.figure import positive
from kabuild.model.speedup import WIDEST, Speedup

_TRUSTED = math.sqrt(WIDEST)
"""What a noisy config counts at most, in lower ends of its interval, as in the judge's means."""


def weighted(cases: Sequence[Mapping[str, Any]], calls: Sequence[int]) -> Speedup | None:
    """The speedup of all calls in one call of the model; cases are in the order of configs.

    None where a time is missing. As everywhere, the lower end of a wide interval counts.
    """
    if len(cases) != len(calls) or not cases:
        return None
    times = [(positive(case, "baseline_ns"), positive(case, "candidate_ns")) for case in cases]
    known = [(before, after) for before, after in times if before and after]
    if len(known) < len(times) or not any(calls):
        return None
    weights = [n * before for n, (before, _) in zip(calls, known, strict=True)]
    ratios = [before / after for before, after in known]
    ends = [(positive(case, "low"), positive(case, "high")) for case in cases]
    intervals = [(low, high) for low, high in ends if low and high]
    if len(intervals) < len(ends):
        return Speedup(_together(weights, ratios))
    middles = [_counted(ratio, *pair) for ratio, pair in zip(ratios, intervals, strict=True)]
    lows, highs = zip(*intervals, strict=True)
    middle, low, high = (_together(weights, each) for each in (middles, lows, highs))
    return Speedup.around(middle, low, high)


def _counted(ratio: float, low: float, high: float) -> float:
    """The best guess of a config's speedup, which is between the ends of its interval."""
    return min(max(ratio, low), high, _TRUSTED * low if high > WIDEST * low else high)


def _together(weights: Sequence[float], speedups: Sequence[float]) -> float:
    """One speedup of calls that take ``weights`` before: their time before over that after."""
    after = sum(weight / speedup for weight, speedup in zip(weights, speedups, strict=True))
    return sum(weights) / after
