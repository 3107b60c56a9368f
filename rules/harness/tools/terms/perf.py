"""The policy of the gate perf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .policy import JudgingPolicy

ON_DEVICE: Mapping[str, Any] = {
    "max_slots": 128,
    "max_processes": 12,
    "min_batch_ms": 0.5,
    "half_width": 0.01,
    "budget_seconds": 15.0,
}
"""What is otherwise on a device, whose clock is quiet."""


@dataclass(frozen=True)
class PerfPolicy(JudgingPolicy):
    """The settings of this gate that a task may change.

    Attributes:
        processes: fresh processes a side, at least; more follow while the budget lasts and
            some interval is wider than ``half_width``.
        max_processes: at most.
        samples: timed batches in each process.
        half_width: half the confidence interval of the log ratio that is precise enough.
        budget_seconds: for all configs together; 0 for the default of the kind of program. On a
            device without the time that it takes to choose a baseline.
            The least number of processes and samples is taken whatever it costs.
        min_batch_ms: how long a batch should be at least.
        max_slots: calls of one batch, at most.
        memory_bytes: of the tensors of one batch, at most.
        clock_ms, clock_share: unexplained time that the audit allows, whichever is more.
        readings: of each batch, at most, until the clocks agree: beside short batches the
            machine's noise is large, and is counted on either side.
        warm: whether calls on inputs that are in the caches are timed, too. Nothing is decided by
            those times.
        memory_share: of a device's memory, that the judge and its runners take together at most.
        machine_spread: half the 95 % interval of the log ratio that other machines of the same
            kind add to it, on a device; it is part of every interval.
        draw: the randomness of the timed inputs, as ``samples.json`` of an earlier judging has
            it; 0 for new.
    """

    processes: int = 3
    max_processes: int = 7
    samples: int = 2
    half_width: float = 0.05
    budget_seconds: float = 0.0
    min_batch_ms: float = 10.0
    max_slots: int = 64
    memory_bytes: int = 64 << 20
    clock_ms: float = 2.0
    clock_share: float = 0.1
    readings: int = 1
    warm: bool = True
    memory_share: float = 0.25
    machine_spread: float = 0.006
    draw: int = 0
