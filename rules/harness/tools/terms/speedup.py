"""A speedup as one figure with its uncertainty, the same wherever it is shown.

A config's speedup is baseline time / candidate time, with a 95 % interval. A task's is the mean
over its configs; its interval is between the means of their ends. If the ends of an interval differ
by more than a factor of ``WIDEST``, its middle is meaningless: the figure is then the lower end,
shown with a ``~``. Means use the middles, each at most ``TRUSTED`` times its lower end. A noisy
config then counts neither as its lower end, which is below the truth, nor as mere noise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDEST = 4.0
TRUSTED = math.sqrt(WIDEST)  # middle over lower end, for the widest interval that has a figure


@dataclass(frozen=True)
class Speedup:
    """The measured speedup, ``value``, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def mean(cls, configs: Sequence[Speedup]) -> Speedup:
        """The speedup of a task, from those of its configs."""
        return cls(
            statistics.fmean(config.counted for config in configs),
            statistics.fmean(config.low for config in configs),
            statistics.fmean(config.high for config in configs),
        )

    @classmethod
    def read(cls, case: Mapping[str, Any]) -> Speedup:
        """The speedup in a case of a perf verdict. Raises ``ValueError`` if it has none.

        If the interval is too wide, the case gives the lower end, and the times give the middle.
        """
        told = [case.get(key) for key in ("speedup", "low", "high")]
        ends = [float(end) for end in told if isinstance(end, int | float)]
        if len(ends) != len(told) or not all(math.isfinite(end) and end > 0 for end in ends):
            raise ValueError(f"invalid speedup, low and high: {told!r}")
        value, low, high = ends
        if not low <= value <= high:
            raise ValueError(f"a speedup of {value:g} is not between {low:g} and {high:g}")
        found = cls(value, low, high)
        if not found.wide:
            return found
        baseline, candidate = (case.get(side) for side in ("baseline_ns", "candidate_ns"))
        if not isinstance(baseline, int | float) or not isinstance(candidate, int | float):
            return found
        measured = baseline / candidate if candidate > 0 else value
        return cls(min(max(measured, low), high), low, high)

    @property
    def figure(self) -> float:
        """The value that is shown and scored: the lower end if the interval is too wide."""
        return self.low if self.wide else self.value

    @property
    def counted(self) -> float:
        """The value that enters a mean."""
        return min(self.value, TRUSTED * self.low)

    @property
    def wide(self) -> bool:
        """Whether the interval is too wide to show one figure."""
        return self.high > WIDEST * self.low

    def __str__(self) -> str:
        """``16.9x ±40 %``, by the half width of the interval on a logarithmic scale.

        ``~2.31x`` if the interval is too wide.
        """
        digits = 0 if self.figure >= 100 else 1 if self.figure >= 10 else 2
        text = f"{self.figure:.{digits}f}x"
        if self.wide:
            return f"~{text}"
        share = 100 * (math.sqrt(self.high / self.low) - 1)
        return f"{text} ±{share:.{0 if share >= 1 else 1}f} %"
