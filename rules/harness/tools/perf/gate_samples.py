"""Plans and samples of timing behind a gate."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from base.program import Config
from truth.assessment import Call, Tensors

from perf.plan import SideName
from perf.verification import Look, Verified

GATE_CLOCK, HOST_CLOCK = "gate", "host"
DOUBT_NS, DOUBT_SHARE = 8_000, 0.002
_THROTTLED = 0x8 | 0x20 | 0x40 | 0x80  # nvmlClocksEventReasons for heat and the power supply


@dataclass(frozen=True)
class GateSample:
    """One timed batch.

    Attributes:
        clock: ``gate``, or ``host`` for a batch that could not wait behind the gate.
        reported_ns: the time that counts: by the judge's clock, less an empty batch, as far as
            empty batches are known (``Empties.applied``).
        open_ns: the same without that subtraction.
        device_ns: by the runner's events, as evidence.
        launch_ns: the host time to queue the calls, as the runner reports it; 0 for ``host``.
        at_once: whether the gate was opened before the runner's context was back on the device.
        attempts: the number of readings taken.
        state: the device's state right after the batch, as ``device_state`` reads it.
        doubt_ns: how far ``open_ns`` may be off, as the judge's processor was elsewhere.
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
    doubt_ns: int = 0

    @property
    def empties(self) -> str:
        """The list of ``Empty`` with the batches that are comparable to this one."""
        return "host" if self.clock == HOST_CLOCK else "at_once" if self.at_once else "settled"

    @property
    def per_call_ns(self) -> float:
        """The time of one call."""
        return self.reported_ns / self.slots

    @property
    def doubtful(self) -> bool:
        """Whether the judge itself may have spoiled the time by more than a usual difference."""
        return self.doubt_ns > max(DOUBT_NS, DOUBT_SHARE * self.open_ns)

    @property
    def throttled(self) -> bool:
        """Whether heat or the power supply slowed the device down."""
        return bool(self.state.get("slowed", 0) & _THROTTLED)


@dataclass(frozen=True)
class SidePlan:
    """How one side of a config is timed.

    Attributes:
        call_ns: the time of a call, as first measured.
        slots: calls of a batch.
        clock: ``gate``, or ``host`` if not even one call can be queued.
    """

    call_ns: float
    slots: int
    clock: str


@dataclass(frozen=True)
class DevicePlan:
    """How a config is timed: calls of a batch by side, and whether they defeat the caches."""

    config: Config
    slots: Mapping[SideName, int]
    cold: bool = False


@dataclass(frozen=True)
class Doubtful:
    """A call that is still to be judged, and the first look at its outputs."""

    call: Call
    outputs: Tensors
    look: Look


@dataclass(frozen=True)
class Odd:
    """A call on other values, in an untimed batch.

    Attributes:
        excess: by output, its error in allowances; None if the baseline is wrong.
        doubtful: the call, if it is still to be judged. As its tensors may be large, they are kept
            only then.
    """

    excess: Mapping[str, float] | None
    doubtful: Doubtful | None = None


@dataclass
class Taken:
    """The samples of one process for one config.

    Attributes:
        odd: calls on other values, in untimed batches.
    """

    samples: list[GateSample] = field(default_factory=list)
    at_once: list[GateSample] = field(default_factory=list)
    warm: list[GateSample] = field(default_factory=list)
    verified: Verified = field(default_factory=Verified)
    odd: list[Odd] = field(default_factory=list)

    def agree(self, share: float) -> bool:
        """Whether most samples are within ``share`` of their median."""
        times = [sample.per_call_ns for sample in self.samples]
        middle = statistics.median(times)
        close = sum(abs(time - middle) <= share * middle for time in times)
        return close > len(times) / 2

    def forget(self) -> None:
        """Release all tensors that are no longer needed."""
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

    Their times are subtracted from batch times, and a candidate could make its own slow. So no more
    than the baseline's is subtracted; the candidate's own is used if it is faster, as a native
    runner's is.
    """

    def __init__(self) -> None:
        self.sides: dict[SideName, Empty] = {"baseline": Empty(), "candidate": Empty()}

    def of(self, side: SideName, kind: str) -> float:
        """The time to subtract from a batch; ``kind`` names a list of ``Empty``."""
        found = [getattr(self.sides[name], kind) for name in {side, "baseline"}]
        return min((statistics.median(values) for values in found if values), default=0.0)

    def less(self, side: SideName, sample: GateSample) -> GateSample:
        """The sample, less the empty batches that are known so far."""
        left = sample.open_ns - self.of(side, sample.empties)
        return replace(sample, reported_ns=max(1, round(left)))

    def applied(self, side: SideName, taken: Taken) -> Taken:
        """The same samples, less the empty batches of all processes.

        A single process has too few of them: an error of 5 us is 1 % of a batch.
        """

        def final(sample: GateSample) -> GateSample:
            if getattr(self.sides["baseline"], sample.empties):
                return self.less(side, sample)
            return replace(sample, reported_ns=sample.open_ns)  # a candidate's have no limit

        return replace(
            taken,
            samples=[*map(final, taken.samples)],
            at_once=[*map(final, taken.at_once)],
            warm=[*map(final, taken.warm)],
        )


def clock_of(samples: Sequence[GateSample]) -> str:
    """The clock of these samples; ``host`` if any sample has it."""
    hosts = any(sample.clock == HOST_CLOCK for sample in samples)
    return HOST_CLOCK if hosts else GATE_CLOCK
