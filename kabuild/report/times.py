"""Times for people."""

from __future__ import annotations


def nanoseconds(value: float | None) -> str:
    """A time in a unit that fits."""
    if value is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} ns"
