"""The policy of the perf gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .policy import DISTRIBUTIONS, JudgingPolicy

ON_DEVICE: Mapping[str, Any] = {
    "max_slots": 128,
    "max_processes": 12,
    "min_batch_ms": 0.5,
    "half_width": 0.008,
    "budget_seconds": 10.0,
}
"""Defaults that differ on a device, whose clock is quiet."""


@dataclass(frozen=True)
class PerfPolicy(JudgingPolicy):
    """The settings of this gate that a task may change.

    Attributes:
        processes: the minimum of fresh processes a side; more follow while the budget lasts
            and the noise of any config is more than ``half_width``.
        max_processes: the maximum of fresh processes a side.
        samples: timed batches in each process.
        half_width: half the confidence interval of the log ratio that is precise enough, counting
            only noise.
        budget_seconds: for all configs together; 0 for the default of the kind of program. On a
            device it excludes the time to choose a baseline. The minimum of processes and
            samples may exceed it.
        min_batch_ms: the minimum duration of a batch.
        max_slots: the most calls of one batch.
        memory_bytes: the most bytes of the tensors of one batch.
        clock_ms, clock_share: unexplained time that the audit allows, whichever is more.
        readings: the most readings of each batch, until the clocks agree. In short batches the
            machine's noise is large, and may count for either side.
        warm: whether calls on cached inputs are timed, too. Those times decide nothing.
        memory_share: the largest share of a device's memory for the judge and its runners.
        machine_spread: half the 95 % interval that the variation between machines of one kind
            adds to the log ratio, on a device; it is part of every interval.
        waiting_spread: what is added further where a side does not keep the device's memory busy:
            where it takes its tensors' bytes with less than 40 % of that memory's speed.
        distributions: those of the values of untimed calls; of them, the built-in ones. By default
            those on which the task's correctness is tested.
        draw: the randomness of the timed inputs, as recorded in ``samples.json`` of an earlier
            judging; 0 for new randomness.
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
    waiting_spread: float = 0.018
    distributions: tuple[str, ...] = DISTRIBUTIONS
    draw: int = 0
