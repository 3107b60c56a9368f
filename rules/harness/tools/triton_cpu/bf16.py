"""bfloat16 for Triton's interpreter: values are held as float32, rounded where bf16 is produced.

NumPy has no bfloat16, and Triton's interpreter computes on the 16-bit patterns as if they were
integers. Here a bf16 value is a float32 whose lower 16 bits are zero; only loads, stores, atomics
and bit casts see the pattern itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_EXPONENT = np.uint32(0x7F800000)
_QUIET = np.uint32(0x00400000)
_UPPER = np.uint32(0xFFFF0000)


def from_bits(bits: Array) -> Array:
    """Widen bf16 bit patterns (16-bit integers, any shape) to the float32 values they stand for."""
    return (bits.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bits(values: Array) -> Array:
    """Give the bf16 bit patterns (uint16) of float32 values that are bf16 values already."""
    words = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return (words >> np.uint32(16)).astype(np.uint16)


def rounded(values: Array) -> Array:
    """Round numbers of any dtype to the nearest bf16 value, ties to even, as float32.

    float64 and integers pass through float32 first, as Triton's own casts do. NaN stays NaN.
    """
    words = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    odd = (words >> np.uint32(16)) & np.uint32(1)
    nearest = (words + (odd + np.uint32(0x7FFF))) & _UPPER
    # The carry above would turn a NaN with a full mantissa into a zero.
    nan = (words & ~np.uint32(0x80000000)) > _EXPONENT
    return np.where(nan, (words & _UPPER) | _QUIET, nearest).view(np.float32)


def truncated(values: Array) -> Array:
    """Round numbers of any dtype towards zero to a bf16 value, as float32. NaN stays NaN."""
    words = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    nan = (words & ~np.uint32(0x80000000)) > _EXPONENT
    return np.where(nan, words | _QUIET, words).__and__(_UPPER).view(np.float32)
