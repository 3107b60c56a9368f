"""A speedup with its uncertainty, the same in every report.

``rules/harness/README.md`` defines it; here it is only stored and formatted.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kabuild.model.figure import positive

WIDEST = 4.0
"""The largest ratio of an interval's ends. Beyond it, the lower end is shown, with a mark."""


@dataclass(frozen=True)
class Speedup:
    """Baseline time / candidate time, and its 95 % interval; None if unknown."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def read(cls, data: Mapping[str, Any], name: str = "speedup") -> Speedup | None:
        """From a verdict's ``name``, ``speedup_low`` and ``speedup_high``, if it has them."""
        value = positive(data, name)
        if value is None:
            return None
        low, high = positive(data, "speedup_low"), positive(data, "speedup_high")
        return cls(value, low, high) if low and high else cls(value)

    @classmethod
    def around(cls, middle: float, low: float, high: float) -> Speedup:
        """A figure with its interval; of one that is too wide, the lower end counts."""
        return cls(low if high > WIDEST * low else middle, low, high)

    @classmethod
    def geometric_mean(cls, parts: Sequence[Speedup]) -> Speedup:
        """The geometric mean of the middles of ``parts``, which are not empty.

        The errors of either side are independent of each other. Without an interval if one of
        ``parts`` has none.
        """
        middle = math.exp(statistics.fmean(math.log(part.middle) for part in parts))
        errors = [part.errors for part in parts]
        known = [error for error in errors if error is not None]
        if len(known) < len(errors):
            return cls(middle)
        below = math.hypot(*(error[0] for error in known)) / len(known)
        above = math.hypot(*(error[1] for error in known)) / len(known)
        return cls.around(middle, middle / math.exp(below), middle * math.exp(above))

    def over(self, other: Speedup) -> Speedup:
        """How many times larger this one is than ``other``, by the middles of both."""
        ratio = self.middle / other.middle
        if self.errors is None or other.errors is None:
            return Speedup(ratio)
        below = math.hypot(self.errors[0], other.errors[1])
        above = math.hypot(self.errors[1], other.errors[0])
        return Speedup.around(ratio, ratio / math.exp(below), ratio * math.exp(above))

    @property
    def middle(self) -> float:
        """The best guess, which means and comparisons are made of.

        If the interval is too wide, ``value`` is its lower end, and the middle is that on a
        logarithmic scale.
        """
        if self.ends is None or not self.wide:
            return self.value
        return math.sqrt(self.ends[0] * self.ends[1])

    @property
    def errors(self) -> tuple[float, float] | None:
        """The distances of both ends from the middle, on a logarithmic scale; None if unknown."""
        if self.ends is None:
            return None
        low, high = (math.log(end / self.middle) for end in self.ends)
        return max(0.0, -low), max(0.0, high)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval; None if unknown."""
        return (self.low, self.high) if self.low and self.high else None

    @property
    def wide(self) -> bool:
        """Whether only a lower bound is known."""
        return self.ends is not None and self.ends[1] > WIDEST * self.ends[0]

    def to_json(self) -> dict[str, float | None]:
        """Three fields, to be merged with others."""
        return {"speedup": self.value, "speedup_low": self.low, "speedup_high": self.high}

    def __str__(self) -> str:
        """``16.9x ±40 %``, by the half width of the interval on a logarithmic scale.

        ``~2.31x`` if that is too wide, and ``2.31x`` if it is unknown.
        """
        digits = 0 if self.value >= 100 else 1 if self.value >= 10 else 2
        text = f"{self.value:.{digits}f}x"
        if self.ends is None:
            return text
        if self.wide:
            return f"~{text}"
        share = 100 * (math.sqrt(self.ends[1] / self.ends[0]) - 1)
        return f"{text} ±{share:.{0 if share >= 1 else 1}f} %"


NO_SPEEDUP: Mapping[str, None] = {"speedup": None, "speedup_low": None, "speedup_high": None}
"""The fields of ``to_json`` without a speedup."""
