"""Times batches by the judge's clock, and compares it with the runner's reports.

The judge times every batch from outside, until the runner is frozen. Empty batches of the trusted
baseline tell it what the messages cost. A runner's own report never counts; it only serves to
detect false reports. So a false report gains nothing, detected or not.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Protocol

from base.program import Batch

SPREADS = 3.0
SLIGHT = 0.25  # share of the tolerance: a thread's CPU time varies less than wall time


class Reading(Protocol):
    """A batch as timed by both clocks."""

    @property
    def reported_ns(self) -> int:
        """The time by the runner's clock."""

    @property
    def wall_ns(self) -> int:
        """The time by the judge's clock."""

    @property
    def thread_ns(self) -> int:
        """How long the runner's main thread ran, by the kernel's count."""

    @property
    def waited_ns(self) -> int:
        """How long the judge or the runner waited for a processor that others used."""


class Clock:
    """Times batches, and compares their reported times.

    Args:
        tolerance_ns: unexplained time that is always allowed.
        share: unexplained time that is allowed as a share of the batch.
    """

    def __init__(self, tolerance_ns: float, share: float) -> None:
        self._tolerance_ns = tolerance_ns
        self._share = share
        self._empty: list[int] = []

    @property
    def empty_ns(self) -> Sequence[int]:
        """The times of the empty batches."""
        return tuple(self._empty)

    @property
    def overhead_ns(self) -> float:
        """The cost of a batch besides its calls: the median of the empty ones."""
        return statistics.median(self._empty)

    @property
    def spread_ns(self) -> float:
        """The variation of empty batches: their median distance from the median."""
        middle = self.overhead_ns
        return statistics.median(abs(wall - middle) for wall in self._empty)

    def calibrate(self, batch: Batch) -> None:
        """Record an empty batch of a trusted program."""
        self._empty.append(batch.wall_ns - batch.reported_ns)

    def counted_ns(self, reading: Reading) -> float:
        """The time of a batch of an untrusted program, messages excluded.

        At least the cost of an empty batch, because shorter work could hide among the messages.
        """
        return max(reading.wall_ns - self.overhead_ns, self.overhead_ns)

    def trusted_ns(self, reading: Reading) -> float:
        """The same for the baseline, whose reports are true: at least its reported time."""
        return max(reading.wall_ns - self.overhead_ns, reading.reported_ns)

    def even_ns(self, reading: Reading) -> float:
        """``trusted_ns``, but at least an empty batch, like the candidate's time."""
        return max(self.trusted_ns(reading), self.overhead_ns)

    def unexplained_ns(self, reading: Reading) -> float:
        """Wall time in excess of the reported time and the cost of an empty batch."""
        return reading.wall_ns - reading.reported_ns - self.overhead_ns

    def impossible(self, batch: Batch) -> str:
        """Why no honest runner can report this, under any load; empty if one can."""
        if 0 < batch.reported_ns <= batch.wall_ns:
            return ""
        return (
            f"the runner reports {_ms(batch.reported_ns)} for a batch that took "
            f"{_ms(batch.wall_ns)} by the judge's clock"
        )

    def quiet(self, reading: Reading) -> bool:
        """Whether both clocks agree on one batch."""
        surplus = self.unexplained_ns(reading) - SPREADS * self.spread_ns
        return surplus <= max(self._tolerance_ns, self._share * reading.wall_ns)

    def complaint(self, own: Sequence[Reading], trusted: Sequence[Reading]) -> str:
        """Why a program's reports are implausible; empty if they are plausible.

        All batches of one config are taken together and compared with the baseline's. Noise varies
        from batch to batch, but a false report that pays must be in most batches, hence in their
        median. The bounds favour honest programs: an undetected false report gains nothing, since
        the judge's clock counts.
        """
        return self._hidden(own, trusted) or self._unexplained(own, trusted)

    def _hidden(self, own: Sequence[Reading], trusted: Sequence[Reading]) -> str:
        """A description of work that the kernel counted and the runner did not report.

        An honest main thread runs only within the time that it reports, except to send messages.
        Waiting for a processor does not add to its CPU time; serving an interrupt may, in some
        batches. Other threads may run at any time.
        """
        reported = statistics.median(batch.reported_ns for batch in own)
        beside = statistics.median(_beside_ns(batch) for batch in own)
        noise = SPREADS * max(_beside_ns(batch) for batch in trusted)
        allowed = max(self._tolerance_ns * SLIGHT, self._share * reported, noise)
        if beside <= allowed:
            return ""
        return (
            f"the runner reports {_ms(reported)} for batches in which its main thread ran for "
            f"{_ms(reported + beside)} by the judge's clock of CPU time"
        )

    def _unexplained(self, own: Sequence[Reading], trusted: Sequence[Reading]) -> str:
        """A description of wall time that neither the reports nor the machine's load explain.

        Time that the kernel counted as waiting for a processor is explained.
        """
        surplus = [self.unexplained_ns(batch) - batch.waited_ns for batch in own]
        unexplained = statistics.median(surplus) - SPREADS * self.spread_ns
        wall = statistics.median(batch.wall_ns for batch in own)
        noise = max(self.unexplained_ns(batch) for batch in trusted)
        allowed = max(self._tolerance_ns, self._share * wall, noise)
        if unexplained <= allowed:
            return ""
        reported = statistics.median(batch.reported_ns for batch in own)
        return (
            f"the runner reports {_ms(reported)} for batches that took {_ms(wall)} by the judge's "
            f"clock: {_ms(unexplained)} are unexplained, {_ms(allowed)} allowed"
        )


def _beside_ns(batch: Reading) -> int:
    """The main thread's CPU time in excess of the reported time."""
    return batch.thread_ns - batch.reported_ns


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3g} ms"
