"""Granted time: the clock of every limit.

It stops while the machine is paused, and while other programs use the processors. So a limit
depends on how slow a program is, not on how busy its machine is. It is not used to measure speed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PIECE_SECONDS = 0.25
"""The longest sleep. Time that a sleep takes beyond this is not granted."""


class GrantedTime:
    """A clock that counts granted seconds only. All methods are thread-safe.

    Args:
        clock: the machine's clock, in seconds; it must be monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._withheld = 0.0
        self._noted = clock()

    def now(self) -> float:
        """The time, from an arbitrary start."""
        return self._clock() - self._withheld

    def sleep(self) -> Sleep:
        """Begin a wait of at most ``PIECE_SECONDS``."""
        return Sleep(self)

    def period(self) -> Period:
        """Begin a period that may later turn out not to have been granted."""
        return Period(self)

    def machine(self) -> float:
        """The machine's own time."""
        return self._clock()

    def withhold(self, seconds: float) -> None:
        """Do not count the last ``seconds``."""
        with self._lock:
            self._withheld += max(0.0, seconds)

    def withhold_since(self, moment: float) -> None:
        """Do not count the time since ``moment`` by the machine's clock; no second twice."""
        with self._lock:
            now = self._clock()
            if now > moment:
                self._withheld += now - max(moment, self._noted)
                self._noted = now


class Sleep:
    """A wait that should end within ``PIECE_SECONDS``."""

    def __init__(self, time: GrantedTime) -> None:
        self._time = time
        self._due = time.machine() + PIECE_SECONDS

    def over(self) -> None:
        """End the wait; the machine caused any time beyond the limit."""
        self._time.withhold_since(self._due)


class Period:
    """A stretch of time from a moment on."""

    def __init__(self, time: GrantedTime) -> None:
        self._time = time
        self._began = time.machine(), time.now()

    def withhold(self, seconds: float) -> None:
        """Do not count this many of its seconds, including those already withheld meanwhile."""
        began, counted = self._began
        lasted = self._time.machine() - began
        lost = lasted - (self._time.now() - counted)
        self._time.withhold(min(seconds, lasted) - lost)


GRANTED = GrantedTime()
"""This process's clock."""
