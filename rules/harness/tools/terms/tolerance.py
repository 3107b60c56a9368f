"""The default tolerances of outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from .dtypes import DTYPES

FACTOR = 4.0
"""The allowed error, as a multiple of the baseline's own."""

CAP = 16.0
"""The limit of that allowance, as a multiple of the tolerance."""


@dataclass(frozen=True)
class Bound:
    """The tolerance of one dtype; both zero if results are exact."""

    atol: float = 0.0
    rtol: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether only the expected value is accepted."""
        return self.atol == 0.0 and self.rtol == 0.0


BOUNDS: Mapping[str, Bound] = {
    "f64": Bound(1e-9, 1e-9),
    "f32": Bound(1e-5, 1e-4),
    "f16": Bound(1e-3, 1e-3),
    "bf16": Bound(8e-3, 8e-3),
    "f8e4m3": Bound(7e-2, 7e-2),
    "f8e4m3fnuz": Bound(7e-2, 7e-2),
    "f8e5m2": Bound(0.14, 0.14),
    "f8e5m2fnuz": Bound(0.14, 0.14),
}


TF32 = BOUNDS["f16"]
"""The tolerance of f32 where the factors of products are rounded to TF32.

TF32 has as many digits as f16.
"""


def bounds(changes: Mapping[str, Mapping[str, float]]) -> dict[str, Bound]:
    """The default bounds of all dtypes with a task's ``changes``.

    Raises ``ValueError`` for an unknown dtype or key and for a negative or infinite value.
    """
    made = {name: BOUNDS.get(name, Bound()) for name in DTYPES}
    for name, change in changes.items():
        if name not in made or not isinstance(change, Mapping) or set(change) - {"atol", "rtol"}:
            raise ValueError(f"invalid tolerance: {name} = {change!r}")
        values = {key: float(value) for key, value in change.items()}
        if not all(math.isfinite(value) and value >= 0 for value in values.values()):
            raise ValueError(f"invalid tolerance: {name} = {change!r}")
        made[name] = Bound(**values)
    return made
