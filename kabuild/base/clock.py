"""Time, injectable, so that schedulers are tested without waiting."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where seconds come from."""

    def monotonic(self) -> float:
        """Seconds since some fixed point; never goes back."""
        ...

    def wall(self) -> float:
        """Seconds since 1970, for people."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds of CLOCK_REALTIME."""
        return time.time()
