"""Scalars of hidden configs and of those at the edges, where a task declares their ranges.

A kernel that has the usual value built in is right in all visible configs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from base.seeds import Stream

Ranges = Mapping[str, tuple[float, float]]
"""By scalar, the least and the largest value; both are integers where the scalar is one."""

_WIDE = 8.0
_PARTS = 1000


def drawn(ranges: Ranges, stream: Stream) -> dict[str, float]:
    """A value of each scalar, of about three digits, which any machine draws alike.

    Kernels get floats in single precision. So do references, which may compare inputs with them.
    """
    return {name: _drawn(low, high, stream) for name, (low, high) in ranges.items()}


def shown(value: float) -> str:
    """A drawn value, in the digits that were drawn."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _drawn(low: float, high: float, stream: Stream) -> float:
    if isinstance(low, int) and isinstance(high, int):
        return stream.between(low, high)
    if low > 0 and high >= _WIDE * low:
        return _single(_of_any_size(low, high, stream))
    value = low + (high - low) * (stream.between(0, _PARTS) / _PARTS)
    return _single(min(max(float(f"{value:.3g}"), low), high))


def _single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _of_any_size(low: float, high: float, stream: Stream) -> float:
    """Each power of ten between the bounds is as likely as any other."""
    first, last = (int(f"{value:e}".partition("e")[2]) for value in (low, high))
    while True:
        power = stream.between(first, last)
        value = float(f"{stream.between(100, 999)}e{power - 2}")
        if low <= value <= high:
            return value
