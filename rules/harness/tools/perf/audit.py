"""The judge's clock against the runner's word.

A runner measures its own batches. The judge measures them too, from outside, and knows from
empty batches of the trusted baseline what the messages cost: time that neither explains is
hidden work, a lie, or the machine's noise. How noisy the machine is just now shows in the
baseline's own batches.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from base.program import Batch

SPREADS = 3.0
SLIGHT = 0.25  # of the time that is always allowed: what a thread runs varies less than the wall's


class Reading(Protocol):
    """A batch by both clocks."""

    @property
    def reported_ns(self) -> int:
        """By the runner's."""

    @property
    def wall_ns(self) -> int:
        """By the judge's."""


@dataclass(frozen=True)
class Charge:
    """What a program pays for time that its reports leave unexplained, so that no lie pays.

    A lie of the same size in every batch shows in the median, however small. One that comes now
    and then shows beyond what the baseline's own readings vary by.

    Attributes:
        always_ns: for every batch.
        usual_ns: what the baseline leaves unexplained itself.
        slack_ns: by how much that varies.
    """

    always_ns: float
    usual_ns: float
    slack_ns: float

    @classmethod
    def settle(cls, own: Sequence[float], trusted: Sequence[float]) -> Charge:
        """From the unexplained time of a program's batches and of the baseline's."""
        middle = statistics.median(trusted)
        spread = statistics.median(abs(value - middle) for value in trusted)
        always = max(0.0, statistics.median(own) - middle)
        return cls(always, middle, SPREADS * spread)

    def of(self, unexplained_ns: float, beside: Sequence[float]) -> float:
        """What one batch pays, ``beside`` which the baseline's of the same round left so much.

        What holds up every one of those is the machine. A lie that hides behind it gains in that
        round alone, and what counts is the median of the rounds.
        """
        usual = max(self.usual_ns, min(beside))
        return max(self.always_ns, unexplained_ns - usual - self.slack_ns)


class Clock:
    """Audits batches.

    Args:
        tolerance_ns: unexplained time that is always allowed.
        share: unexplained time that is allowed as a share of the batch.
    """

    def __init__(self, tolerance_ns: float, share: float) -> None:
        self._tolerance_ns = tolerance_ns
        self._share = share
        self._empty: list[int] = []
        self._noise_ns = 0.0
        self._beside_ns = 0

    @property
    def empty_ns(self) -> Sequence[int]:
        """What each empty batch took."""
        return tuple(self._empty)

    @property
    def overhead_ns(self) -> float:
        """What a batch costs besides its calls: the median of the empty ones."""
        return statistics.median(self._empty)

    @property
    def spread_ns(self) -> float:
        """How much that varies: the median distance from the median."""
        middle = self.overhead_ns
        return statistics.median(abs(wall - middle) for wall in self._empty)

    def calibrate(self, batch: Batch) -> None:
        """Take note of an empty batch of a program that is trusted."""
        self._empty.append(batch.wall_ns - batch.reported_ns)

    def trust(self, batch: Batch) -> None:
        """Take note of a timed batch of a program that is trusted."""
        self._noise_ns = max(self._noise_ns, self.unexplained_ns(batch))
        self._beside_ns = max(self._beside_ns, batch.thread_ns - batch.reported_ns)

    def unexplained_ns(self, batch: Reading) -> float:
        """Wall time beyond what was reported and what an empty batch costs."""
        return batch.wall_ns - batch.reported_ns - self.overhead_ns

    def impossible(self, batch: Batch) -> str:
        """Why no honest runner can have reported this, whatever the load; else empty."""
        if 0 < batch.reported_ns <= batch.wall_ns:
            return ""
        return (
            f"the runner reports {_ms(batch.reported_ns)} for a batch that took "
            f"{_ms(batch.wall_ns)} by the judge's clock"
        )

    def hidden(self, batch: Batch) -> str:
        """Which work the kernel has counted that was not reported; empty where there is none.

        An honest main thread runs within the time that it reports, but for its messages, and all
        threads together no longer than that on every processor: no load of the machine adds to
        what a thread runs.
        """
        slight = self._tolerance_ns * SLIGHT
        allowed = max(slight, self._share * batch.reported_ns, SPREADS * self._beside_ns)
        cores = os.cpu_count() or 1
        for ran_ns, most in ((batch.thread_ns, 1), (batch.process_ns, cores)):
            if ran_ns > (batch.reported_ns + allowed) * most:
                return (
                    f"the runner reports {_ms(batch.reported_ns)} for a batch in which "
                    f"{'its main thread' if most == 1 else 'it'} ran for {_ms(ran_ns)} by the "
                    f"judge's clock of the processor"
                )
        return ""

    def held_up_ns(self, batch: Batch) -> float:
        """For how long others had the processors while the runner or the judge wanted one.

        Threads of its own that a runner has kept busy may have caused as much as they ran.
        """
        return max(0.0, batch.waited_ns - (batch.process_ns - batch.thread_ns))

    def quiet(self, batch: Batch) -> bool:
        """Whether the clocks agree without the excuse that the baseline's do not either."""
        return self._surplus_ns(batch) <= self._allowed_ns(batch)

    def _surplus_ns(self, batch: Batch) -> float:
        return self.unexplained_ns(batch) - SPREADS * self.spread_ns

    def _allowed_ns(self, batch: Batch) -> float:
        return max(self._tolerance_ns, self._share * batch.wall_ns)

    def complaint(self, batch: Batch, *, busy: bool = False) -> str:
        """Why the reported time cannot be believed; empty where it can.

        With ``busy`` others are allowed to have had the processors, as long as the kernel has
        counted that. This decides who is rejected, never what anybody pays.
        """
        if said := self.impossible(batch) or self.hidden(batch):
            return said
        unexplained = self._surplus_ns(batch)
        allowed = max(self._allowed_ns(batch), self._noise_ns)
        if busy:
            unexplained -= self.held_up_ns(batch)
        if unexplained <= allowed:
            return ""
        return (
            f"the runner reports {_ms(batch.reported_ns)} for a batch that took "
            f"{_ms(batch.wall_ns)} by the judge's clock: {_ms(unexplained)} are unexplained, "
            f"{_ms(allowed)} allowed"
        )


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3g} ms"
