"""The figures of one config on a device, from the samples of both sides."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from terms.verdict import number

from perf import confidence
from perf.confidence import Ratio
from perf.gate_samples import GATE_CLOCK, DevicePlan, GateSample, Taken, clock_of
from perf.plan import SIDES, SideName

TOLERATED_NS = 10_000.0
"""The difference that a batch may show when the gate is opened at once: the clocks' read error."""
SPREADS = 3.0
BUSY = 0.4
"""The share of the memory's speed from which on a kernel keeps memory busy; a copy has 0.85.

A share above 1 says that not all bytes come from memory, so nothing about how busy it is.
"""

BySide = dict[SideName, list[Taken]]


@dataclass(frozen=True)
class Machines:
    """What machines of one kind differ by, as half 95 % intervals of a log ratio.

    Kernels that do not keep memory busy differ by more: some of them depend on how long memory
    takes to answer, and that may differ between devices with the same clocks.

    Attributes:
        spread: between any two kernels.
        waiting: further, if one of them does not keep memory busy.
        memory: bytes a second of the device's memory; 0 if unknown, as if no kernel did.
    """

    spread: float
    waiting: float
    memory: float

    def between(self, moved_bytes: int, *times_ns: float) -> float:
        """Between kernels that take so many ns each for tensors of ``moved_bytes``."""
        busy = (BUSY * self.memory * ns <= 1e9 * moved_bytes <= self.memory * ns for ns in times_ns)
        return self.spread if self.memory and all(busy) else self.most

    @property
    def most(self) -> float:
        """Between kernels of which nothing is known."""
        return math.hypot(self.spread, self.waiting)


@dataclass(frozen=True)
class DeviceFigures:
    """Times per call in ns, and their ratio.

    Attributes:
        charged_ns: added to each of the candidate's calls, for work that was done only if the
            gate stayed shut for long after the inputs had arrived.
        noise: half the 95 % interval of the log ratio on this machine alone.
    """

    candidate_ns: float
    baseline_ns: float
    charged_ns: float
    ratio: Ratio
    noise: float

    @classmethod
    def of(
        cls,
        plan: DevicePlan,
        taken: BySide,
        moved_bytes: int,
        machines: Machines,
        *,
        warm: bool = False,
    ) -> DeviceFigures:
        """From the processes' results, of calls that move ``moved_bytes``."""
        charged = 0.0 if warm else _charged(plan, taken)
        times = {side: [_times(one, warm=warm) for one in taken[side]] for side in SIDES}
        times = {side: [process for process in times[side] if process] for side in SIDES}
        candidate = [[time + charged for time in process] for process in times["candidate"]]
        candidate_ns = confidence.mean_time(candidate)
        baseline_ns = confidence.mean_time(times["baseline"])
        here = confidence.mean_ratio(candidate, times["baseline"])
        spread = machines.most if warm else machines.between(moved_bytes, candidate_ns, baseline_ns)
        return cls(candidate_ns, baseline_ns, charged, widened(here, spread), here.half_width)

    def to_json(self) -> dict[str, Any]:
        """As a part of ``verdict.json``."""
        return {
            "candidate_ns": number(self.candidate_ns),
            "baseline_ns": number(self.baseline_ns),
            "charged_ns": number(self.charged_ns),
            "speedup": number(self.ratio.speedup.figure),
            "low": number(self.ratio.low),
            "high": number(self.ratio.high),
            "noise": number(self.noise),
        }


@dataclass(frozen=True)
class DeviceTiming:
    """One config: the figures that count, and for comparison those of repeated calls.

    Attributes:
        moved_bytes: all inputs and outputs of a call, each counted once.
        flops: operations of a call by the task's count; 0 if it has none.
        launch_ns: by side, the host time to launch a call; None if the call did not wait behind
            the gate.
        throttled: whether heat or the power supply slowed the device down in any batch.
        clocks: by side, ``gate`` or ``host``.
        warm: as in ``perf.timing.Timing``.
    """

    plan: DevicePlan
    figures: DeviceFigures
    moved_bytes: int
    flops: int
    launch_ns: dict[SideName, float | None]
    throttled: bool
    clocks: dict[SideName, str]
    warm: DeviceFigures | None = None

    @classmethod
    def of(
        cls, plan: DevicePlan, taken: BySide, machines: Machines, moved_bytes: int, flops: int
    ) -> DeviceTiming:
        """From the processes' results."""
        samples = {side: _all(taken[side]) for side in SIDES}
        has_warm = all(any(one.warm for one in taken[side]) for side in SIDES)
        return cls(
            plan,
            DeviceFigures.of(plan, taken, moved_bytes, machines),
            moved_bytes,
            flops,
            launch_ns={side: _launching(samples[side]) for side in SIDES},
            throttled=any(sample.throttled for side in SIDES for sample in samples[side]),
            clocks={side: clock_of(samples[side]) for side in SIDES},
            warm=DeviceFigures.of(plan, taken, moved_bytes, machines, warm=True)
            if has_warm
            else None,
        )

    @property
    def ratio(self) -> Ratio:
        """The speedup that counts."""
        return self.figures.ratio

    def to_json(self) -> dict[str, Any]:
        """As a case of ``verdict.json``."""
        return {
            "config": self.plan.config.name,
            **self.figures.to_json(),
            "faster": self.ratio.faster,
            "slots": self.plan.slots["candidate"],
            "baseline_slots": self.plan.slots["baseline"],
            "cold": self.plan.cold,
            "bytes": self.moved_bytes,
            "flops": self.flops,
            "warm": self.warm and self.warm.to_json(),
            "clock": self.clocks["candidate"],
            "baseline_clock": self.clocks["baseline"],
            "launch_ns": _number_of(self.launch_ns["candidate"]),
            "baseline_launch_ns": _number_of(self.launch_ns["baseline"]),
            "throttled": self.throttled,
        }


def widened(ratio: Ratio, spread: float) -> Ratio:
    """The ratio with its interval widened by another half width of the log ratio."""
    below, above = (math.log(end / ratio.value) for end in (ratio.low, ratio.high))
    return Ratio(
        ratio.value,
        ratio.value * math.exp(-math.hypot(below, spread)),
        ratio.value * math.exp(math.hypot(above, spread)),
    )


def _charged(plan: DevicePlan, taken: BySide) -> float:
    """The extra time of a candidate's call when the gate is opened at once.

    An honest side takes equally long either way. The baseline's own difference, and the noise of
    its batches, are subtracted.
    """
    differences = {side: _differences(taken[side]) for side in SIDES}
    own, trusted = differences["candidate"], differences["baseline"]
    if not own:
        return 0.0
    usual = statistics.median(trusted) if trusted else 0.0
    noise = statistics.median(abs(value - usual) for value in trusted) if trusted else 0.0
    surplus = statistics.median(own) - max(usual, 0.0) - SPREADS * noise - TOLERATED_NS
    return max(0.0, surplus) / plan.slots["candidate"]


def _differences(processes: Sequence[Taken]) -> list[float]:
    """By process, the extra time of a batch when the gate is opened at once."""
    return [
        sample.reported_ns - statistics.median(other.reported_ns for other in one.samples)
        for one in processes
        for sample in one.at_once
        if clock_of(one.samples) == GATE_CLOCK
    ]


def _times(taken: Taken, *, warm: bool) -> list[float]:
    return [sample.per_call_ns for sample in (taken.warm if warm else taken.samples)]


def _all(processes: Sequence[Taken]) -> list[GateSample]:
    return list(chain.from_iterable((*one.samples, *one.at_once) for one in processes))


def _launching(samples: Sequence[GateSample]) -> float | None:
    found = [s.launch_ns / s.slots for s in samples if s.clock == GATE_CLOCK]
    return statistics.median(found) if found else None


def _number_of(value: float | None) -> Any:
    return None if value is None else number(value)
