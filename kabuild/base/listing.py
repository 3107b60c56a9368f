"""Short lists and counts in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def abridged(items: Sequence[str], most: int = 3) -> str:
    """The first ``most`` items and the number of others: ``a, b, c and 4 more``."""
    more = len(items) - most
    return ", ".join(items[:most]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """``1 result``, ``2 results``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
