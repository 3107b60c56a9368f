"""One process's turn with one config, and the runner interface that it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from base.program import Config, Gated
from torch import Tensor
from truth.assessment import Call, Tensors
from truth.side import Running

from perf.gate_samples import GATE_CLOCK, SidePlan, Taken, clock_of
from perf.plan import SideName


class Held(Running, Protocol):
    """A runner whose batches can wait behind a gate."""

    def has_loaded(self, config: Config, slots: int) -> bool:
        """Whether exactly this is loaded."""

    def gated(
        self, inputs: Sequence[Mapping[str, Tensor]], *, repeats: int = 1, at_once: bool = False
    ) -> Gated | None:
        """A batch behind a gate; None if the platform has no gates."""


@dataclass(frozen=True)
class Turn:
    """One process's turn with one config.

    Attributes:
        beside: what the other side's process of this round has taken, if it was the first.
    """

    side: SideName
    number: int
    runner: Held
    config: Config
    plan: SidePlan
    taken: Taken
    beside: Taken | None = None

    @property
    def slots(self) -> int:
        """The number of calls of its batches."""
        return self.plan.slots

    @property
    def held(self) -> bool:
        """Whether its batches wait behind the gate, as far as is known."""
        clocks = (self.plan.clock, clock_of(self.taken.samples))
        return clocks == (GATE_CLOCK, GATE_CLOCK)


def inputs(calls: Sequence[Call]) -> list[Tensors]:
    """The inputs of these calls."""
    return [call.inputs for call in calls]
