"""Time that the machine grants: the clock of every limit.

It stands still while the machine is paused, and while others have the processors. So a limit tells
how slow a program is, not how busy its machine. It measures no speed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PIECE_SECONDS = 0.25
"""How long anybody sleeps at once: what a sleep takes beyond that is not granted."""


class GrantedTime:
    """Seconds that count. All methods may be called by several threads.

    Args:
        clock: of the machine, in seconds; it never goes back.
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
        """Begin to wait for no longer than ``PIECE_SECONDS``."""
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
        """Do not count what has passed since a ``moment`` of the machine; each second once."""
        with self._lock:
            now = self._clock()
            if now > moment:
                self._withheld += now - max(moment, self._noted)
                self._noted = now


class Sleep:
    """A wait that was to end within ``PIECE_SECONDS``."""

    def __init__(self, time: GrantedTime) -> None:
        self._time = time
        self._due = time.machine() + PIECE_SECONDS

    def over(self) -> None:
        """Note that it is over: what it took longer was the machine's doing."""
        self._time.withhold_since(self._due)


class Period:
    """From a moment on."""

    def __init__(self, time: GrantedTime) -> None:
        self._time = time
        self._began = time.machine(), time.now()

    def withhold(self, seconds: float) -> None:
        """Do not count so many seconds of it, with those that were withheld meanwhile."""
        began, counted = self._began
        lasted = self._time.machine() - began
        lost = lasted - (self._time.now() - counted)
        self._time.withhold(min(seconds, lasted) - lost)


GRANTED = GrantedTime()
"""This process's."""
