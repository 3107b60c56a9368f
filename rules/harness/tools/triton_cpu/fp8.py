"""8-bit floats for Triton's interpreter: held as float32, rounded where one is produced.

Triton's own conversions do not round to the nearest value. Here an 8-bit value is held as the
float32 with the same value, as in ``bf16``. Conversions saturate, as in PTX with ``satfinite``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Format:
    """An 8-bit format.

    Attributes:
        kind: PyTorch's dtype for it.
        digits: the number of stored bits of its mantissa.
        lowest: the exponent of its smallest normal number, as a power of two.
        largest: its largest finite number.
        negative_zero: whether it has a negative zero.
    """

    kind: torch.dtype
    digits: int
    lowest: int
    largest: float
    negative_zero: bool

    def from_bits(self, bits: Array) -> Array:
        """Widen bit patterns (8-bit integers, any shape) to the float32 values they stand for."""
        patterns = torch.from_numpy(np.array(bits.view(np.uint8)))
        widened: Array = patterns.view(self.kind).to(torch.float32).numpy()
        return widened

    def to_bits(self, values: Array) -> Array:
        """Give the bit patterns (uint8) of float32 values that the format represents exactly."""
        exact = torch.from_numpy(np.array(values, dtype=np.float32))
        patterns: Array = exact.to(self.kind).view(torch.uint8).numpy()
        return patterns

    def rounded(self, values: Array) -> Array:
        """Round numbers to the nearest value, ties to even, as float32. NaN stays NaN."""
        return self._on_grid(values, np.rint)

    def truncated(self, values: Array) -> Array:
        """Round numbers towards zero, as float32. NaN stays NaN."""
        return self._on_grid(values, np.trunc)

    def _on_grid(self, values: Array, rule: Any) -> Array:
        """Round by `rule` to multiples of the format's step at each value, and saturate.

        Scaling is exact: steps are powers of two, and float64 has 29 more digits than float32.
        """
        exact = np.asarray(values).astype(np.float32).astype(np.float64)
        exponent = np.frexp(exact)[1] - 1
        step = np.ldexp(1.0, np.maximum(exponent, self.lowest) - self.digits)
        near = np.clip(rule(exact / step) * step, -self.largest, self.largest)
        if not self.negative_zero:
            near += 0.0
        return np.asarray(near, dtype=np.float32)


FORMATS = {
    "fp8e4nv": Format(torch.float8_e4m3fn, 3, -6, 448.0, negative_zero=True),
    "fp8e4b8": Format(torch.float8_e4m3fnuz, 3, -7, 240.0, negative_zero=False),
    "fp8e5": Format(torch.float8_e5m2, 2, -14, 57344.0, negative_zero=True),
    "fp8e5b16": Format(torch.float8_e5m2fnuz, 2, -15, 57344.0, negative_zero=False),
}
"""The formats by Triton's names. PyTorch has no ``fp8e4b15``."""
