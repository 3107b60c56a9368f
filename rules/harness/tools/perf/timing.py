"""What was measured of one config, from the samples of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from base.seeds import derive
from base.verdict import number

from perf import confidence
from perf.audit import Charge, Clock
from perf.confidence import Ratio
from perf.measure import Plan, Sample, Series


@dataclass(frozen=True)
class Figures:
    """Times per call in ns, and their ratio.

    Attributes:
        charged_ns: what the candidate pays in every call for unexplained time.
    """

    candidate_ns: float
    baseline_ns: float
    charged_ns: float
    ratio: Ratio

    @classmethod
    def of(cls, plan: Plan, series: Series, clock: Clock) -> Figures:
        """From what the reports say and the clock leaves unexplained.

        Both sides pay for unexplained time: what the audit tolerates as noise must not pay.
        """
        told = _unexplained(series.candidate, clock)
        trusted = _unexplained(series.baseline, clock)
        noise = list(chain.from_iterable(trusted))
        own = Charge.settle(list(chain.from_iterable(told)), noise)
        candidate = _charged(series.candidate, told, trusted, own)
        baseline = _charged(series.baseline, trusted, trusted, Charge.settle(noise, noise))
        seed = int.from_bytes(derive("bootstrap", plan.config.name)[:8], "big")
        return cls(
            confidence.typical(candidate),
            confidence.typical(baseline),
            own.always_ns / plan.slots,
            confidence.ratio(candidate, baseline, seed),
        )

    def to_json(self) -> dict[str, Any]:
        """As a part of ``verdict.json``."""
        return {
            "candidate_ns": number(self.candidate_ns),
            "baseline_ns": number(self.baseline_ns),
            "charged_ns": number(self.charged_ns),
            "speedup": number(self.ratio.value),
            "low": number(self.ratio.low),
            "high": number(self.ratio.high),
        }


@dataclass(frozen=True)
class Timing:
    """One config: the figures that count, and beside them those of repeated calls.

    Attributes:
        moved_bytes: of all inputs and outputs of a call, each counted once.
        flops: operations of a call as the task counts them; 0 where nobody did.
        warm: of calls on the same inputs again and again, which are in the caches then; nothing
            is decided by it. None where it was not measured.
    """

    plan: Plan
    figures: Figures
    moved_bytes: int
    flops: int
    warm: Figures | None = None

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
            "slots": self.plan.slots,
            "baseline_slots": self.plan.slots_of("baseline"),
            "cold": self.plan.cold,
            "bytes": self.moved_bytes,
            "flops": self.flops,
            "warm": self.warm and self.warm.to_json(),
        }


def _unexplained(processes: Sequence[Sequence[Sample]], clock: Clock) -> list[list[float]]:
    """By process, of which each side has one a round."""
    return [[clock.unexplained_ns(sample) for sample in process] for process in processes]


def _charged(
    processes: Sequence[Sequence[Sample]],
    unexplained: Sequence[Sequence[float]],
    beside: Sequence[Sequence[float]],
    charge: Charge,
) -> list[list[float]]:
    """The times per call that count."""
    return [
        [
            s.per_call_ns + charge.of(ns, others) / s.slots
            for s, ns in zip(samples, left, strict=True)
        ]
        for samples, left, others in zip(processes, unexplained, beside, strict=True)
    ]
