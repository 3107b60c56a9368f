"""A speedup with its uncertainty, the same in every report.

``rules/harness/README.md`` defines it; here it is only stored and formatted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
