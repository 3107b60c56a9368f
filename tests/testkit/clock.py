"""Time that moves only when a test says so."""

from __future__ import annotations


class FakeClock:
    """A Clock whose two readings move together."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now
