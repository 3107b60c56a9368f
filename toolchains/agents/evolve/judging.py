"""The hard gates: compilation, correctness and times, from the task's judge.

Only these decide. A kernel is timed against the one that it would replace, alternating within one
measurement; the interval of their ratio tells whether it is faster.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import kabuild_check
from journal import Journal, key_of
from kabuild_check import CheckError

VERDICT = "verdict"
Verdict = Mapping[str, Any]


class Checking(Protocol):
    """``kabuild_check.check``."""

    def __call__(
        self, source: str, gates: Sequence[str] = ..., *, budget: float = ..., against: str = ...
    ) -> kabuild_check.Answer:
        """The verdicts. Raises CheckError."""


@dataclass(frozen=True)
class Ratio:
    """The old time divided by the new one, with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def is_faster(self) -> bool:
        """Whether the new one is faster beyond the noise."""
        return self.low > 1.0

    def __str__(self) -> str:
        return f"{self.value:.3f}x [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Case:
    """One config: its times per call in ns, cold, and warm if measured.

    ``bytes`` counts all tensors once; ``flops`` is the task's count, or 0 without one.
    """

    config: str
    new_ns: float
    old_ns: float
    ratio: Ratio
    warm_ns: float | None = None
    bytes: float = 0.0
    flops: float = 0.0

    @property
    def bytes_per_second(self) -> float:
        """The least rate at which it moves memory."""
        return self.bytes / self.new_ns * 1e9

    @property
    def flops_per_second(self) -> float:
        """The rate at which it computes."""
        return self.flops / self.new_ns * 1e9


@dataclass(frozen=True)
class Judgement:
    """The gates' verdicts on one kernel.

    Attributes:
        verdicts: of the requested gates, in order.
        problem: why the judge itself failed; the result is unknown then.
    """

    verdicts: tuple[Verdict, ...] = field(hash=False)
    problem: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it compiles and is correct."""
        return not self.problem and all(v["verdict"] == "PASS" for v in self.verdicts)

    @property
    def failed(self) -> Verdict | None:
        """The first verdict that is not PASS."""
        return next((v for v in self.verdicts if v["verdict"] != "PASS"), None)

    @property
    def reason(self) -> str:
        """Why it failed, in one word; empty if it passed or the reason is unknown."""
        failed = self.failed
        return "" if failed is None else str(failed.get("reason") or failed["verdict"])

    @property
    def cases(self) -> tuple[Case, ...]:
        """The times; empty if it was not timed."""
        timed = [v for v in self.verdicts if v["gate"] == "perf" and v["verdict"] == "PASS"]
        return tuple(_case(case) for verdict in timed for case in verdict["cases"])

    @property
    def ratio(self) -> Ratio | None:
        """The geometric mean of the ratios of all configs."""
        return overall([case.ratio for case in self.cases]) if self.cases else None


class Judge:
    """Runs the gates, unless the journal has the result.

    ``seconds`` limits a measurement; 0 stands for the gate's own limit.

    No text is judged twice: times differ each time, and a search that resumes has to make the same
    decisions.
    """

    def __init__(self, check: Checking, journal: Journal, seconds: float = 0.0) -> None:
        self._check = check
        self._journal = journal
        self._seconds = seconds

    def prove(self, source: str) -> Judgement:
        """Whether a kernel compiles and is correct."""
        return self._ask(source, ("compile", "correctness"), "")

    def time(self, source: str, against: str) -> Judgement:
        """Its times against another kernel, or against the task's baseline if that is empty."""
        return self._ask(source, ("perf",), against)

    def _ask(self, source: str, gates: Sequence[str], against: str) -> Judgement:
        key = key_of(source, ",".join(gates), against)
        known = self._journal.find(VERDICT, key)
        if isinstance(known, list):
            return Judgement(tuple(known))
        try:
            answer = self._check(source, gates, budget=self._seconds, against=against)
        except CheckError as error:
            return Judgement((), problem=str(error))
        self._journal.write(VERDICT, key, list(answer.verdicts))
        return Judgement(answer.verdicts)


def overall(ratios: Sequence[Ratio]) -> Ratio:
    """The geometric mean of independent ratios, with its interval."""
    count = len(ratios)
    middle = sum(math.log(ratio.value) for ratio in ratios) / count
    below = math.hypot(*(math.log(ratio.value / ratio.low) for ratio in ratios)) / count
    above = math.hypot(*(math.log(ratio.high / ratio.value) for ratio in ratios)) / count
    return Ratio(math.exp(middle), math.exp(middle - below), math.exp(middle + above))


def _case(case: Mapping[str, Any]) -> Case:
    warm = case.get("warm")
    return Case(
        case["config"],
        float(case["candidate_ns"]),
        float(case["baseline_ns"]),
        Ratio(float(case["speedup"]), *kabuild_check.ends(dict(case))),
        float(warm["candidate_ns"]) if warm else None,
        float(case.get("bytes") or 0.0),
        float(case.get("flops") or 0.0),
    )
