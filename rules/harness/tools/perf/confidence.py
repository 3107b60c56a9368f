"""The uncertainty of a measured speedup: intervals of the log ratio.

``ratio`` is for a noisy clock, by which some processes are far slower than others: it uses
medians and a bootstrap. ``mean_ratio`` is for a quiet clock: it uses means and Welch's t-test.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from terms.speedup import Speedup
from torch import Tensor

_LEAST = 2  # processes of a side: a single one has no spread
RESAMPLES = 1000
LEVEL = 0.95
# Quantiles of Student's t at 97.5 % for 1 to 10 degrees of freedom, divided by the normal's 1.96.
_STUDENT = (6.48, 2.20, 1.62, 1.42, 1.31, 1.25, 1.21, 1.18, 1.15, 1.14)
_QUANTILES = (
    (1.0, 12.7062),
    (2.0, 4.3027),
    (3.0, 3.1824),
    (4.0, 2.7764),
    (5.0, 2.5706),
    (6.0, 2.4469),
    (8.0, 2.3060),
    (10.0, 2.2281),
    (15.0, 2.1314),
    (30.0, 2.0423),
    (math.inf, 1.9600),
)
"""Pairs of degrees of freedom and the quantile of Student's t at 97.5 %."""

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
        """The same as the ``Speedup`` that is shown and averaged."""
        return Speedup(self.value, self.low, self.high)

    @property
    def half_width(self) -> float:
        """Half the interval of the log ratio: 0.05 is about 5 % either way."""
        return math.log(self.high / self.low) / 2.0


def per_process(samples: Samples) -> list[float]:
    """The median of each process: samples of one process share caches, placement and luck."""
    return [statistics.median(process) for process in samples]


def typical(samples: Samples) -> float:
    """The median over processes of each process's median."""
    return statistics.median(per_process(samples))


def typical_time(samples: Samples) -> float:
    """``typical`` on a logarithmic scale, so that the ratio of two of them is the speedup."""
    return math.exp(typical(_logarithms(samples)))


def mean_time(samples: Samples) -> float:
    """The geometric mean over processes of each process's median."""
    return math.exp(statistics.fmean(per_process(_logarithms(samples))))


def mean_ratio(candidate: Samples, baseline: Samples) -> Ratio:
    """The ratio of the sides' ``mean_time``, from times per call by process.

    The interval is Welch's, for the difference of two means with unequal spreads. It assumes that
    the logarithms of a process's times are normally distributed. A side with one process has no
    spread; the interval is then that of ``ratio``. Raises what ``ratio`` raises.
    """
    logs = [per_process(_logarithms(side)) for side in (candidate, baseline)]
    point = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
    if min(map(len, logs)) < _LEAST:
        half = ratio(candidate, baseline, seed=0).half_width
    else:
        half = _welch(*logs)
    return Ratio(math.exp(point), math.exp(point - half), math.exp(point + half))


def ratio(candidate: Samples, baseline: Samples, seed: int) -> Ratio:
    """The speedup of ``candidate`` over ``baseline``, from times per call by process.

    Processes are drawn with replacement, then samples within each. With few processes a
    bootstrap gives too narrow an interval, so it is widened by the ratio of Student's t to the
    normal quantile. It then holds the true ratio in at least 95 of 100 simulated measurements of
    3 processes with 2 samples each. Raises ``ValueError`` for a side without samples or with
    a time that is not positive and finite.
    """
    logs = [_logarithms(side) for side in (candidate, baseline)]
    point = typical(logs[1]) - typical(logs[0])
    source = torch.Generator("cpu").manual_seed(seed)
    draws = (_resampled(logs[1], source) - _resampled(logs[0], source)).sort().values.tolist()
    cut = int(RESAMPLES * (1.0 - LEVEL) / 2.0)
    widening = _widening(sum(len(side) - 1 for side in logs))
    low = point - (point - draws[cut]) * widening
    high = point + (draws[-1 - cut] - point) * widening
    return Ratio(math.exp(point), math.exp(min(low, point)), math.exp(max(high, point)))


def _welch(one: Sequence[float], other: Sequence[float]) -> float:
    """Half the 95 % interval of the difference of two means."""
    errors = [statistics.variance(side) / len(side) for side in (one, other)]
    weight = sum(
        error * error / (len(side) - 1) for error, side in zip(errors, (one, other), strict=True)
    )
    total = sum(errors)
    return _quantile(total * total / weight) * math.sqrt(total) if weight else 0.0


def _quantile(freedom: float) -> float:
    """Student's t at 97.5 %, at most 2 % too large between the whole degrees of freedom."""
    for (fewer, high), (more, low) in itertools.pairwise(_QUANTILES):
        if freedom <= more:
            share = (1.0 / freedom - 1.0 / more) / (1.0 / fewer - 1.0 / more)
            return low + share * (high - low)
    raise AssertionError(freedom)


def _logarithms(side: Samples) -> list[list[float]]:
    if not side or not all(side):
        raise ValueError("a side without samples has no ratio")
    if not all(math.isfinite(time) and time > 0 for process in side for time in process):
        raise ValueError("times are positive and finite")
    return [[math.log(time) for time in process] for process in side]


def _resampled(side: Samples, source: torch.Generator) -> Tensor:
    """``typical`` of ``RESAMPLES`` draws of processes, and of samples in each: [RESAMPLES]."""
    with torch.device("cpu"):
        most = max(map(len, side))
        padded = [[*each, *[math.inf] * (most - len(each))] for each in side]
        times = torch.tensor(padded, dtype=torch.float64)
        lengths = torch.tensor([len(each) for each in side])
        processes = torch.randint(len(side), (RESAMPLES, len(side)), generator=source)
        counts = lengths[processes]
        places = torch.rand((*processes.shape, most), generator=source) * counts[..., None]
        drawn = times[processes[..., None], places.long()]
        drawn[torch.arange(most) >= counts[..., None]] = math.inf  # a shorter process has no more
        return _medians(_medians(drawn, counts), torch.full((RESAMPLES,), len(side)))


def _medians(values: Tensor, counts: Tensor) -> Tensor:
    """The median of the first ``counts`` values in ascending order, along the last axis."""
    ordered = values.sort(dim=-1).values
    middle = torch.stack([(counts - 1) // 2, counts // 2], dim=-1)
    return ordered.gather(-1, middle).mean(dim=-1)


def _widening(freedom: int) -> float:
    """Student's quantile over the normal's, for two sides with ``freedom`` in all."""
    if freedom < 1:
        return _STUDENT[0]
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.0
