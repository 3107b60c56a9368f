"""Plans and samples of timing behind a gate."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from base.program import Config
from truth.assessment import Call, Tensors

from perf.plan import SideName
from perf.verification import Verified

GATE_CLOCK, HOST_CLOCK = "gate", "host"
_THROTTLED = 0x8 | 0x20 | 0x40 | 0x80  # nvmlClocksEventReasons of heat and of the power supply


@dataclass(frozen=True)
class GateSample:
    """One timed batch.

    Attributes:
        clock: ``gate``, or ``host`` for one that could not wait behind it.
        reported_ns: what counts: by the judge's clock, less an empty batch.
        open_ns: the same with it.
        device_ns: by the runner's events, as evidence.
        launch_ns: what queueing the calls took the host, as the runner says; 0 by ``host``.
        at_once: the gate was opened before the runner's context was back on the device.
        attempts: readings that were taken.
        state: of the device right after it, as ``device_state`` reads it.
    """

    slots: int
    clock: str
    reported_ns: int
    open_ns: int
    device_ns: int
    launch_ns: int
    at_once: bool = False
    attempts: int = 1
    state: Mapping[str, int] = field(default_factory=dict)

    @property
    def per_call_ns(self) -> float:
        """The time of one call."""
        return self.reported_ns / self.slots

    @property
    def throttled(self) -> bool:
        """Whether heat or the power supply slowed the device down."""
        return bool(self.state.get("slowed", 0) & _THROTTLED)


@dataclass(frozen=True)
class SidePlan:
    """How one side of a config is timed.

    Attributes:
        call_ns: what a first look found a call to take.
        slots: calls of a batch.
        clock: ``gate``, unless not even one call can be queued.
    """

    call_ns: float
    slots: int
    clock: str


@dataclass(frozen=True)
class DevicePlan:
    """How a config is timed: by side calls of a batch, and whether that defeats the caches."""

    config: Config
    slots: Mapping[SideName, int]
    cold: bool = False


@dataclass
class Taken:
    """The samples of one process for one config.

    Attributes:
        odd: calls on other values, in untimed batches, with their outputs.
    """

    samples: list[GateSample] = field(default_factory=list)
    at_once: list[GateSample] = field(default_factory=list)
    warm: list[GateSample] = field(default_factory=list)
    verified: Verified = field(default_factory=Verified)
    odd: list[tuple[Call, Tensors]] = field(default_factory=list)

    def forget(self) -> None:
        """Release all tensors, which are no longer needed."""
        self.odd.clear()
        self.verified.worst.clear()


@dataclass
class Empty:
    """Times of empty batches of one side's runners, in ns, by how the gate is opened."""

    settled: list[int] = field(default_factory=list)
    at_once: list[int] = field(default_factory=list)
    host: list[int] = field(default_factory=list)


class Empties:
    """Empty batches of both sides.

    They are subtracted from times, and a candidate could make its own slow. So at most the
    baseline's are subtracted; the candidate's own where they are faster, as a native runner's are.
    """

    def __init__(self) -> None:
        self.sides: dict[SideName, Empty] = {"baseline": Empty(), "candidate": Empty()}

    def of(self, side: SideName, kind: str) -> float:
        """What is taken off a batch; ``kind`` is a list of ``Empty``."""
        found = [getattr(self.sides[name], kind) for name in {side, "baseline"}]
        return min((statistics.median(values) for values in found if values), default=0.0)


def clock_of(samples: Sequence[GateSample]) -> str:
    """By which clock they are, the worse one where there are both."""
    hosts = any(sample.clock == HOST_CLOCK for sample in samples)
    return HOST_CLOCK if hosts else GATE_CLOCK
