"""The calls of a batch behind a gate, limited by time, caches, memory and the queue."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from base.program import Config, Signature

from perf import plausibility

COPIES_OF_INPUTS = 3  # as drawn, in one piece to be delivered, and delivered
COPIES_OF_OUTPUTS = 2  # as written, and as taken
DELIVERED_BYTES = 1 << 30
"""Inputs of one batch at most, where a call has no more: they are delivered within one slice of the
device's time, in which no runner can see them come."""

PILOT_SLOTS = 8


@dataclass(frozen=True)
class Need:
    """The bytes of the device for a config: ``fixed``, and more for each slot."""

    fixed: int
    slot: int

    @classmethod
    def of(cls, signature: Signature, config: Config, verifying: int) -> Need:
        """The need of judge and runner together; ``verifying`` bytes are taken to verify a call."""
        taken = plausibility.traffic(Signature(signature.inputs, (), (), ()), config)
        made = plausibility.traffic(Signature((), signature.results, (), ()), config)
        slot = COPIES_OF_INPUTS * taken + COPIES_OF_OUTPUTS * made
        # What an eager program holds in between is about what it returns.
        return cls(verifying + 4 * made, slot)

    def bytes(self, slots: int) -> int:
        """The bytes for a number of slots."""
        return self.fixed + slots * self.slot


@dataclass(frozen=True)
class Wishes:
    """The wishes and limits for the calls of a batch.

    Attributes:
        batch_ns: how long a batch should be.
        cold_bytes: that the calls of a batch should touch, so that caches help none of them.
        most_slots: of any batch.
        tensor_bytes: of the device, for everything that one config takes.
        needs: by config, the memory that it takes.
    """

    batch_ns: float
    cold_bytes: int
    most_slots: int
    tensor_bytes: int
    needs: Mapping[str, Need] = field(default_factory=dict, hash=False)

    def slots(self, signature: Signature, config: Config, call_ns: float) -> int:
        """The slots for calls of a duration; at least 1."""
        need = self.needs[config.name]
        touched = plausibility.traffic(signature, config) or 1
        delivered = plausibility.traffic(Signature(signature.inputs, (), (), ()), config) or 1
        wanted = max(self.batch_ns / max(call_ns, 1.0), self.cold_bytes / touched)
        most = min(
            self.most_slots,
            (self.tensor_bytes - need.fixed) // max(need.slot, 1),
            DELIVERED_BYTES // delivered,
        )
        return max(1, min(math.ceil(wanted), most))


def fitting(wanted: int, fits: Callable[[int], bool]) -> int:
    """The most slots, of ``wanted`` halved again and again, whose calls all fit the queue.

    0 where not even one call can be queued without waiting for the device.
    """
    slots = wanted
    while slots and not fits(slots):
        slots //= 2
    return slots
