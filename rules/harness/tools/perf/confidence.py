"""The uncertainty of a measured speedup: a bootstrap interval of the log ratio."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from terms.speedup import Speedup

RESAMPLES = 1000
LEVEL = 0.95
# Quantiles of Student's t at 97.5 % for 1 ... 10 degrees of freedom, over the normal's 1.96.
_STUDENT = (6.48, 2.20, 1.62, 1.42, 1.31, 1.25, 1.21, 1.18, 1.15, 1.14)

Samples = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Ratio:
    """Baseline time / candidate time, with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def faster(self) -> bool:
        """Whether the candidate is faster beyond the noise."""
        return self.low > 1.0

    @property
    def speedup(self) -> Speedup:
        """The figure that counts: the lower end of an interval that is too wide."""
        measured = Speedup(self.value, self.low, self.high)
        return Speedup(self.low, self.low, self.high) if measured.wide else measured

    @property
    def half_width(self) -> float:
        """Half the interval of the log ratio: 0.05 is about 5 % either way."""
        return math.log(self.high / self.low) / 2.0


def per_process(samples: Samples) -> list[float]:
    """The median of each process: within one, samples share caches, placement and luck."""
    return [statistics.median(process) for process in samples]


def typical(samples: Samples) -> float:
    """The median over processes of their medians."""
    return statistics.median(per_process(samples))


def typical_time(samples: Samples) -> float:
    """The same on a logarithmic scale, so that the ratio of two is the speedup."""
    return math.exp(typical(_logarithms(samples)))


def ratio(candidate: Samples, baseline: Samples, seed: int) -> Ratio:
    """The speedup of ``candidate`` over ``baseline``, times per call by process.

    Processes are drawn with replacement, then samples within each. With few processes a
    bootstrap is too sure of itself, so the interval is widened as Student's t is against
    the normal: it then holds the true ratio in at least 95 of 100 simulated measurements of
    3 processes with 2 samples each. Raises ``ValueError`` for a side without samples or with
    a time that is not positive and finite.
    """
    logs = [_logarithms(side) for side in (candidate, baseline)]
    point = typical(logs[1]) - typical(logs[0])
    source = random.Random(seed)  # noqa: S311 - statistics, no secret
    draws = sorted(
        _resampled(logs[1], source) - _resampled(logs[0], source) for _ in range(RESAMPLES)
    )
    cut = int(RESAMPLES * (1.0 - LEVEL) / 2.0)
    widening = _widening(sum(len(side) - 1 for side in logs))
    low = point - (point - draws[cut]) * widening
    high = point + (draws[-1 - cut] - point) * widening
    return Ratio(math.exp(point), math.exp(min(low, point)), math.exp(max(high, point)))


def _logarithms(side: Samples) -> list[list[float]]:
    if not side or not all(side):
        raise ValueError("a side without samples has no ratio")
    if not all(math.isfinite(time) and time > 0 for process in side for time in process):
        raise ValueError("times are positive and finite")
    return [[math.log(time) for time in process] for process in side]


def _resampled(side: Samples, source: random.Random) -> float:
    medians = []
    for _ in side:
        process = side[int(source.random() * len(side))]
        drawn = [process[int(source.random() * len(process))] for _ in process]
        medians.append(statistics.median(drawn))
    return statistics.median(medians)


def _widening(freedom: int) -> float:
    """Student's quantile over the normal's, for two sides with ``freedom`` in all."""
    if freedom < 1:
        return _STUDENT[0]
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.0
