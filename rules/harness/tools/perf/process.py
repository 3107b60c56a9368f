"""Collects the results of one timed process, and verifies them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from base.program import Batch
from truth.assessment import Call, Tensors, larger
from truth.judge import Judge
from truth.stage import require

from perf.asides import Aside
from perf.plan import Plan, Sample, SideName


class Process:
    """The results of one process: by config, its samples and all calls with their outputs.

    Attributes:
        ran: calls on usual values.
        odd: calls of untimed batches.
        after: calls of other sizes.
    """

    def __init__(self, side: SideName, number: int) -> None:
        self.side = side
        self.number = number
        self.samples: dict[str, list[Sample]] = {}
        self.warm: dict[str, list[Sample]] = {}
        self.ran: dict[str, list[tuple[Call, Tensors]]] = {}
        self.odd: dict[str, list[tuple[Call, Tensors]]] = {}
        self.after: dict[str, list[tuple[Aside, Sequence[Tensors]]]] = {}

    def add(self, plan: Plan, calls: Sequence[Call], batch: Batch) -> None:
        """Keep the outputs of a batch for verification."""
        kept = self.ran.setdefault(plan.config.name, [])
        kept += zip(calls, batch.outputs, strict=True)

    def add_odd(self, plan: Plan, calls: Sequence[Call], outputs: Sequence[Tensors]) -> None:
        """Keep the outputs of an untimed batch."""
        kept = self.odd.setdefault(plan.config.name, [])
        kept += zip(calls, outputs, strict=True)

    def time(self, plan: Plan, batch: Batch, attempts: int) -> None:
        """Keep the times of a batch."""
        sample = self._sample(plan, batch, attempts)
        self.samples.setdefault(plan.config.name, []).append(sample)

    def time_repeated(self, plan: Plan, batch: Batch) -> None:
        """Keep the times of a batch that repeats one call."""
        self.warm[plan.config.name] = [self._sample(plan, batch, 1)]

    def _sample(self, plan: Plan, batch: Batch, attempts: int) -> Sample:
        slots = plan.slots_of(self.side)
        return Sample(
            slots, batch.reported_ns, batch.wall_ns, attempts, batch.waited_ns, batch.thread_ns
        )


def verify(judge: Judge, plan: Plan, candidate: Process, baseline: Process) -> None:
    """Judge all outputs of the candidate, given the baseline's own error.

    Calls on unusual values are ignored if the baseline itself is wrong on them. Raises
    CandidateFault.
    """
    name, assessor = plan.config.name, judge.assessor
    slack: Mapping[str, float] = {}
    for call, outputs in baseline.ran[name]:
        slack = larger(slack, assessor.excesses(call, outputs))
    for call, outputs in candidate.ran[name]:
        require(judge, call, outputs, slack, "a timed call")
    beside = {id(call): outputs for call, outputs in baseline.odd.get(name, ())}
    for call, outputs in candidate.odd.get(name, ()):
        if not assessor.defined(call):
            continue
        allowed = slack
        if (theirs := beside.get(id(call))) is not None:
            off = assessor.excesses(call, theirs)
            if not assessor.assess(call, theirs, off).ok:
                continue
            allowed = larger(slack, off)
        require(judge, call, outputs, allowed, "an untimed call in a timed batch")
    for aside, ran in candidate.after.get(name, ()):
        for call, outputs in zip(aside.calls, ran, strict=True):
            require(judge, call, outputs, aside.slack, "an untimed call between timed batches")
