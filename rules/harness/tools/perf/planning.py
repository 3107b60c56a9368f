"""Plans the number of calls in each batch, by the judge's clock alone.

A program that is slow during planning would have short batches later, whose work could hide among
the messages. So every timed batch may lengthen the batches that follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from base.program import Config

from perf.audit import Clock
from perf.plan import SIDES, Plan, Sample, SideName

COLD_FACTOR = 3
SHORT = 0.5  # of the wanted time: a shorter batch is timed again with more calls
GROWTH = 2  # at least this many times as many calls then


@dataclass(frozen=True)
class Bounds:
    """The limits of one config's batches.

    Attributes:
        min_batch_ns: how long a batch should be.
        max_slots: calls of one batch, at most.
        call_bytes: of all tensors of a call.
        cache_bytes: of the last-level cache, which the calls of a batch should exceed.
        memory_bytes: of all tensors of a batch, at most.
        batch_seconds: the limit for one batch, and also for the judge's work on its calls.
        alone_ns: a batch has one call if the baseline's take this long.
    """

    min_batch_ns: float
    max_slots: int
    call_bytes: int
    cache_bytes: int
    memory_bytes: int
    batch_seconds: float
    alone_ns: float = math.inf

    def slots(self, call_ns: float, judge_seconds: float) -> int:
        """The calls of a batch, for a program with this time per call."""
        wanted = max(self.min_batch_ns / call_ns, COLD_FACTOR * self.cache_bytes / self.call_bytes)
        most = min(
            self.max_slots,
            self.memory_bytes / self.call_bytes,
            self.batch_seconds / judge_seconds,
            self.batch_seconds * 1e9 / call_ns,
        )
        return max(1, math.floor(min(math.ceil(wanted), most)))


class Planner:
    """Plans the batches of a judging.

    Args:
        bounds: of a config.
        judge_seconds: the judge's current cost of one call.
    """

    def __init__(
        self, clock: Clock, bounds: Callable[[Config], Bounds], judge_seconds: Callable[[], float]
    ) -> None:
        self._clock = clock
        self._bounds = bounds
        self._judge_seconds = judge_seconds

    def first(self, config: Config, pilot: Mapping[SideName, Sequence[Sample]]) -> Plan:
        """A plan from a pilot round, using the shorter of measured and reported times."""
        times = {side: min(map(self._believed_ns, samples)) for side, samples in pilot.items()}
        return self._plan(config, times)

    def again(self, plan: Plan, round_: Mapping[SideName, Sequence[Sample]]) -> Plan | None:
        """A plan with more calls if a batch was too short; otherwise None."""
        quickest = {side: min(map(self._judged_ns, round_[side])) for side in SIDES}
        longer = self._plan(plan.config, quickest)
        slots = {side: max(plan.slots_of(side), longer.slots_of(side)) for side in SIDES}
        enough = SHORT * self._bounds(plan.config).min_batch_ns
        if not any(
            quickest[side] * plan.slots_of(side) < enough
            and slots[side] >= GROWTH * plan.slots_of(side)
            for side in SIDES
        ):
            return None
        return replace(longer, slots=slots["candidate"], baseline_slots=slots["baseline"])

    def _plan(self, config: Config, times: Mapping[SideName, float]) -> Plan:
        bounds, judge_seconds = self._bounds(config), self._judge_seconds()
        cold = COLD_FACTOR * bounds.cache_bytes
        if times["baseline"] >= bounds.alone_ns:
            bounds = replace(bounds, max_slots=1)
        # Other programs on the same processors should interrupt both sides' batches equally often.
        own, theirs = (bounds.slots(times[side], judge_seconds) for side in SIDES)
        return Plan(config, own, min(own, theirs) * bounds.call_bytes > cold, theirs)

    def _believed_ns(self, sample: Sample) -> float:
        return min(sample.per_call_ns, self._judged_ns(sample))

    def _judged_ns(self, sample: Sample) -> float:
        return self._clock.counted_ns(sample) / sample.slots
