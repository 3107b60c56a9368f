"""The number of calls in a batch behind a gate, limited by time, caches, memory and the queue."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from base.program import Config, Signature

from perf import plausibility
from perf.oracle_memory import Verification

COPIES_OF_INPUTS = 3  # as drawn, as one piece to deliver, and as delivered
COPIES_OF_OUTPUTS = 2  # as written, and as copied
DELIVERED_BYTES = 1 << 30
"""The most input bytes of a batch, unless a single call has more. They are delivered within one
slice of the device's time, in which no runner can see them arrive."""

HOST_SECONDS, MOST_HOST_SECONDS = 0.25, 1.0
"""How long the host may take for the inputs, true outputs and own check of one batch; and of one
with ``FEW`` calls.

A script may compute them in Python's loops. The first calls of a batch take longer, which counts
where calls wait for the host.
"""

FEW = 8

_BESIDE, _LEAST_BESIDE = 4, 2  # copies of the outputs: what an eager program has in between

_LARGE = 4 << 30
_PROCESS = 1 << 30  # a context, and what libraries and compilers reserve

PILOT_SLOTS = 8


@dataclass(frozen=True)
class Need:
    """The device bytes for a config: ``fixed``, plus ``slot`` for each slot.

    Attributes:
        least: with which a single call is usually judged.
    """

    fixed: int
    slot: int
    least: int

    @classmethod
    def of(cls, signature: Signature, config: Config, verifying: Verification) -> Need:
        """The need of judge and runner together, of which ``verifying`` is for the outputs."""
        taken = plausibility.traffic(Signature(signature.inputs, (), (), ()), config)
        made = plausibility.traffic(Signature((), signature.results, (), ()), config)
        slot = COPIES_OF_INPUTS * taken + COPIES_OF_OUTPUTS * made
        return cls(
            fixed=verifying.bytes + _BESIDE * made,
            slot=slot,
            least=verifying.least + _LEAST_BESIDE * made + slot,
        )

    @property
    def large(self) -> bool:
        """Whether a single call takes so much that others cannot be kept beside it."""
        return self.slot > _LARGE

    def bytes(self, slots: int) -> int:
        """The bytes for a number of slots."""
        return self.fixed + slots * self.slot


@dataclass(frozen=True)
class Wishes:
    """The targets and limits for the number of calls in a batch.

    Attributes:
        batch_ns: how long a batch should be.
        cold_bytes: that the calls of a batch should touch, so that no call benefits from caches.
        most_slots: the limit for any batch.
        tensor_bytes: the device bytes that one config may take in total.
        needs: by config, the memory that it takes.
    """

    batch_ns: float
    cold_bytes: int
    most_slots: int
    tensor_bytes: int
    needs: Mapping[str, Need] = field(default_factory=dict, hash=False)

    def slots(
        self, signature: Signature, config: Config, call_ns: float, host_seconds: float = 0.0
    ) -> int:
        """The slots for calls of this duration; at least 1.

        ``host_seconds`` is the host's time for one call: its inputs, true outputs, and own check.
        """
        need = self.needs[config.name]
        touched = plausibility.traffic(signature, config) or 1
        delivered = plausibility.traffic(Signature(signature.inputs, (), (), ()), config) or 1
        wanted = max(self.batch_ns / max(call_ns, 1.0), self.cold_bytes / touched)
        most = min(
            self.most_slots,
            (self.tensor_bytes - need.fixed) // max(need.slot, 1),
            DELIVERED_BYTES // delivered,
            _by_host(max(host_seconds, 1e-9)),
        )
        return max(1, min(math.ceil(wanted), int(most)))

    def fit(self, slots: Sequence[tuple[str, int]]) -> bool:
        """Whether processes for these configs, each with so many slots, fit in memory together."""
        needed = sum(self.needs[name].bytes(count) + _PROCESS for name, count in slots)
        return needed <= self.tensor_bytes


def _by_host(seconds: float) -> float:
    """The calls that the host has time for, at so many seconds each."""
    return max(HOST_SECONDS / seconds, min(FEW, MOST_HOST_SECONDS / seconds))


def fitting(wanted: int, fits: Callable[[int], bool]) -> int:
    """The largest number of slots that fits the queue, found by halving ``wanted``.

    0 if not even one call can be queued without waiting for the device.
    """
    slots = wanted
    while slots and not fits(slots):
        slots //= 2
    return slots
