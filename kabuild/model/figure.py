"""Numbers from untrusted records: a gate's, or a foreign bundle's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

_LEAST, _MOST = 1e-30, 1e30
"""The bounds of a figure, far beyond any measurement, so that sums stay finite."""


def positive(data: Mapping[str, Any], name: str) -> float | None:
    """A number above 0; None for anything else."""
    value = data.get(name)
    return float(value) if _is_number(value) and _LEAST < value < _MOST else None


def number(data: Mapping[str, Any], name: str) -> float | None:
    """A number of any sign, or 0; None for anything else."""
    value = data.get(name)
    return float(value) if _is_number(value) and -_MOST < value < _MOST else None


def _is_number(value: Any) -> TypeGuard[int | float]:
    """Neither text nor ``true``. NaN fails the callers' comparisons."""
    return isinstance(value, int | float) and not isinstance(value, bool)
