"""Where the seconds of a measurement go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Phases:
    """Adds up seconds by the name of a phase.

    A phase within another one counts as its own time, not as the other's. Work that a device does
    in the background counts where its result is waited for.

    Attributes:
        seconds: by phase.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds: dict[str, float] = {}
        self._now = now
        self._running: list[str] = []
        self._since = now()

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count the block as ``name``."""
        self._count()
        self._running.append(name)
        try:
            yield
        finally:
            self._count()
            self._running.pop()

    def _count(self) -> None:
        now = self._now()
        if self._running:
            name = self._running[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now

    def rounded(self) -> dict[str, float]:
        """The seconds to the millisecond, the longest phase first."""
        longest = sorted(self.seconds, key=lambda name: -self.seconds[name])
        return {name: round(self.seconds[name], 3) for name in longest}
