"""Values of facts, which a hostile model may have written, and of an edited ``model.json``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

MALFORMED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""What readers raise for another form, numbers of any size included."""

_MOST = 1e18
"""The largest figure, far beyond any measurement, so that products stay finite and short."""
_MOST_COUNT = (1 << 63) - 1
_ROUNDING = 1e-6


def text(value: Any) -> str:
    """A string. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def count(value: Any) -> int:
    """A whole number from 0, of 63 bits. Raises TypeError."""
    if type(value) is not int or not 0 <= value <= _MOST_COUNT:
        raise TypeError("expected a count")
    return value


def number(value: Any) -> float:
    """A finite figure from 0. Raises TypeError."""
    if type(value) not in {int, float} or not 0 <= value <= _MOST:
        raise TypeError("expected a number")
    return float(value)


def share(value: Any) -> float:
    """A part of a whole. Raises TypeError."""
    if number(value) > 1 + _ROUNDING:
        raise TypeError("expected a share of at most 1")
    return float(value)


def figure(value: Any) -> float:
    """A number of any sign, perhaps not finite. Raises TypeError or OverflowError."""
    if type(value) not in {int, float}:
        raise TypeError("expected a number")
    return float(value)


def check_shares(shares: Sequence[float]) -> None:
    """Raise ValueError for shares that are more than a whole together."""
    if math.fsum(shares) > 1 + _ROUNDING:
        raise ValueError("the shares of all parts are more than 1")


def check_counts(value: Any) -> None:
    """Raise ValueError for an integer of more than 64 bits, at any depth."""
    if isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            check_counts(item)
    elif isinstance(value, int) and abs(value) > _MOST_COUNT:
        raise ValueError("an integer has more than 64 bits")
