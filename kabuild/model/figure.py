"""Numbers out of records that anyone may have written: a gate's, or a foreign bundle's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

_LEAST, _MOST = 1e-30, 1e30
"""What a figure lies between: nothing that is measured comes near, and sums stay finite."""


def positive(data: Mapping[str, Any], name: str) -> float | None:
    """A number above 0; None for whatever else stands there."""
    value = data.get(name)
    return float(value) if _is_number(value) and _LEAST < value < _MOST else None


def number(data: Mapping[str, Any], name: str) -> float | None:
    """A number of any sign, or 0; None for whatever else stands there."""
    value = data.get(name)
    return float(value) if _is_number(value) and -_MOST < value < _MOST else None


def _is_number(value: Any) -> TypeGuard[int | float]:
    """Neither text nor ``true``; NaN is left to comparisons, which it fails."""
    return isinstance(value, int | float) and not isinstance(value, bool)
