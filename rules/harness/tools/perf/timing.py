"""The figures of one config, from the samples of both sides."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from base.seeds import derive
from terms.verdict import number

from perf import confidence
from perf.audit import Clock
from perf.confidence import Ratio
from perf.plan import Plan, Series


@dataclass(frozen=True)
class Figures:
    """Times per call in ns, and their ratio.

    Attributes:
        baseline_ns: like the candidate's, no batch counts as shorter than an empty one.
        charged_ns: the part of the candidate's time that it did not report itself.
        ratio: its low end uses the baseline's true times.
        noise: half the interval of the log ratio, counting only what more samples would narrow.
    """

    candidate_ns: float
    baseline_ns: float
    charged_ns: float
    ratio: Ratio
    noise: float

    @classmethod
    def of(cls, plan: Plan, series: Series, clock: Clock) -> Figures:
        """The figures by the judge's clock, for both sides.

        A batch shorter than an empty one counts as an empty one on both sides, or equal programs
        would differ. The true time may be less; the low end of the interval allows for that.
        """
        candidate = [[clock.counted_ns(s) / s.slots for s in p] for p in series.candidate]
        true = [[clock.trusted_ns(s) / s.slots for s in p] for p in series.baseline]
        baseline = [[clock.even_ns(s) / s.slots for s in p] for p in series.baseline]
        unreported = [
            clock.counted_ns(sample) - sample.reported_ns
            for sample in chain.from_iterable(series.candidate)
        ]
        seed = int.from_bytes(derive("bootstrap", plan.config.name)[:8], "big")
        ratio = confidence.ratio(candidate, baseline, seed)
        low = ratio.low if true == baseline else confidence.ratio(candidate, true, seed).low
        return cls(
            confidence.typical_time(candidate),
            confidence.typical_time(baseline),
            max(0.0, statistics.median(unreported)) / plan.slots,
            replace(ratio, low=min(low, ratio.low)),
            ratio.half_width,
        )

    def to_json(self) -> dict[str, Any]:
        """As a part of ``verdict.json``."""
        return {
            "candidate_ns": number(self.candidate_ns),
            "baseline_ns": number(self.baseline_ns),
            "charged_ns": number(self.charged_ns),
            "speedup": number(self.ratio.speedup.figure),
            "low": number(self.ratio.low),
            "high": number(self.ratio.high),
        }


@dataclass(frozen=True)
class Timing:
    """One config: the figures that count, and those of repeated calls.

    Attributes:
        moved_bytes: all inputs and outputs of a call, each counted once.
        flops: operations of a call by the task's count; 0 if it has none.
        warm: of calls repeated on the same inputs, which are then in the caches. They decide
            nothing. None if it was not measured.
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
