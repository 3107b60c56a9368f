"""A speedup as one figure with its uncertainty: the same wherever it is shown.

A config's is baseline time / candidate time, with a 95 % interval; a task's is the mean over its
configs, between the means of their ends. If the ends of an interval differ by more than ``WIDEST``,
its middle measures nothing: its lower end counts, and is shown with a ``~``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDEST = 4.0


@dataclass(frozen=True)
class Speedup:
    """The speedup that counts, ``value``, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def mean(cls, configs: Sequence[Speedup]) -> Speedup:
        """The speedup of a task, from those of its configs."""
        return cls(
            statistics.fmean(config.value for config in configs),
            statistics.fmean(config.low for config in configs),
            statistics.fmean(config.high for config in configs),
        )

    @classmethod
    def read(cls, case: Mapping[str, Any]) -> Speedup:
        """The speedup in a case of a perf verdict. Raises ``ValueError`` if it has none."""
        told = [case.get(key) for key in ("speedup", "low", "high")]
        ends = [float(end) for end in told if isinstance(end, int | float)]
        if len(ends) != len(told) or not all(math.isfinite(end) and end > 0 for end in ends):
            raise ValueError(f"speedup, low and high are {told!r}")
        value, low, high = ends
        if not low <= value <= high:
            raise ValueError(f"a speedup of {value:g} is not between {low:g} and {high:g}")
        return cls(value, low, high)

    @property
    def wide(self) -> bool:
        """Whether the interval is too wide to show one figure."""
        return self.high > WIDEST * self.low

    def __str__(self) -> str:
        """``16.9x ±40 %``, by the half width of the interval on a logarithmic scale.

        ``~2.31x`` where that is too wide.
        """
        digits = 0 if self.value >= 100 else 1 if self.value >= 10 else 2
        text = f"{self.value:.{digits}f}x"
        if self.wide:
            return f"~{text}"
        share = 100 * (math.sqrt(self.high / self.low) - 1)
        return f"{text} ±{share:.{0 if share >= 1 else 1}f} %"
