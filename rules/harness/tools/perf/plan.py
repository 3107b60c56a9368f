"""Plans, batches and samples of timed processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from base.program import Config
from truth.assessment import Call

from perf.asides import Aside

SideName = Literal["candidate", "baseline"]
SIDES: tuple[SideName, SideName] = ("candidate", "baseline")


@dataclass(frozen=True)
class Plan:
    """How one config is timed.

    Attributes:
        slots: calls of a batch; the candidate's, if the baseline has a different number.
        cold: whether the calls of a batch defeat the caches.
        baseline_slots: the baseline's; 0 if equal to ``slots``. A side that is much slower gets
            fewer, so that the other side's batches are not shorter than its own.
    """

    config: Config
    slots: int
    cold: bool = False
    baseline_slots: int = 0

    def slots_of(self, side: SideName) -> int:
        """The calls of one side's batches."""
        return self.baseline_slots or self.slots if side == "baseline" else self.slots

    @property
    def most_slots(self) -> int:
        """The calls of the larger batch."""
        return max(self.slots, self.baseline_slots)


@dataclass(frozen=True)
class Sample:
    """One timed batch. ``attempts`` counts its readings; this is the shortest.

    ``waited_ns`` is how long the judge and the runner waited for a processor that others used,
    ``thread_ns`` how long the runner's main thread ran; both are 0 if the kernel does not count.
    """

    slots: int
    reported_ns: int
    wall_ns: int
    attempts: int = 1
    waited_ns: int = 0
    thread_ns: int = 0

    @property
    def per_call_ns(self) -> float:
        """The reported time of one call."""
        return self.reported_ns / self.slots


@dataclass(frozen=True)
class Turn:
    """One batch: the calls of each side; a side with fewer slots makes only the first of them."""

    calls: Mapping[SideName, Sequence[Call]]
    timed: bool

    def calls_of(self, side: SideName, slots: int) -> Sequence[Call]:
        """The calls for one side."""
        return self.calls[side][:slots]


@dataclass(frozen=True)
class Drawn:
    """The calls of one process for one config.

    Attributes:
        first: made before anything is timed.
        turns: the batches in order, timed or not.
        repeated: made repeatedly in the last batch; empty if warm calls are not timed.
        after: calls of another size, for the candidate.
    """

    first: list[Call]
    turns: list[Turn]
    repeated: list[Call] = field(default_factory=list)
    after: Aside | None = None


Round = Mapping[str, Mapping[SideName, list[Sample]]]  # by config and side


@dataclass
class Series:
    """All samples of one config, by side and process."""

    candidate: list[list[Sample]] = field(default_factory=list)
    baseline: list[list[Sample]] = field(default_factory=list)

    def of(self, side: SideName) -> list[list[Sample]]:
        """The samples of one side, by process."""
        return self.candidate if side == "candidate" else self.baseline
