"""The retention gate: how much of a speedup remains on unseen configs.

It times both sides as the perf gate does, on the unseen gate's configs that both sides pass, and
compares the speedup with the perf gate's on the visible configs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from base.program import Config
from base.spec import Spec, SpecError
from perf import gate as perf
from terms.speedup import Speedup as Measured
from terms.verdict import PASS, Verdict, number, read_verdict
from truth.oracle import TaskFault
from truth.side import Launching

GATE = "retention"
UNTIMED = "edge"  # a class of sizes at which there is nothing to gain


@dataclass(frozen=True)
class Speedup:
    """The geometric mean of some configs' speedups, and its 95 % confidence interval."""

    logarithm: float
    half_width: float

    @classmethod
    def of(cls, cases: Sequence[Mapping[str, Any]]) -> Speedup:
        """The speedup over the cases of a perf verdict; each config has its own noise.

        Each config enters with its ``counted`` speedup, as in a mean.
        """
        logarithms = [math.log(Measured.read(case).counted) for case in cases]
        widths = [math.log(case["high"] / case["low"]) / 2 for case in cases]
        spread = math.sqrt(sum(width * width for width in widths)) / len(cases)
        return cls(statistics.fmean(logarithms), spread)

    def over(self, other: Speedup) -> Speedup:
        """The ratio of this speedup to another."""
        spread = math.hypot(self.half_width, other.half_width)
        return Speedup(self.logarithm - other.logarithm, spread)

    def interval(self) -> tuple[float, float, float]:
        """Low end, value and high end."""
        low, high = self.logarithm - self.half_width, self.logarithm + self.half_width
        return math.exp(low), math.exp(self.logarithm), math.exp(high)


def run(spec: Spec, launcher: Launching, folder: Path = Path("verdicts")) -> Verdict:
    """Time both sides on unseen configs and return the verdict, with ``samples.json``.

    ``folder`` holds the verdicts of perf and unseen, which both passed. Raises SpecError, TaskFault
    and MachineFault, if nothing was judged.
    """
    try:
        visible = read_verdict(folder / "perf.json", "perf")["cases"]
        drawn = read_verdict(folder / "unseen.json", "unseen")["cases"]
    except (OSError, ValueError) as error:
        raise SpecError(f"retention needs the verdicts of perf and unseen: {error}") from None
    timed = [case for case in drawn if _is_timed(case)]
    if not timed or not visible:
        raise TaskFault("there is no unseen config that both sides pass, so nothing to time")
    configs = tuple(Config(c["config"], c["dims"], c["dtype"], c["scalars"]) for c in timed)
    verdict = perf.run(replace(spec, configs=configs), launcher)
    if verdict.outcome != PASS:
        return replace(verdict, gate=GATE)
    return _verdict(verdict, visible, {case["config"]: case["class"] for case in timed})


def _is_timed(case: Mapping[str, Any]) -> bool:
    return bool(case["quadrant"] == "both_pass" and case["class"] != UNTIMED)


def _verdict(
    timed: Verdict, visible: Sequence[Mapping[str, Any]], classes: Mapping[str, str]
) -> Verdict:
    unseen, shown = Speedup.of(timed.cases), Speedup.of(visible)
    low, retained, high = unseen.over(shown).interval()
    _, faster, _ = unseen.interval()
    _, known, _ = shown.interval()
    extra = {
        "retention": number(retained),
        "retention_low": number(low),
        "retention_high": number(high),
        "unseen_speedup": number(faster),
        "visible_speedup": number(known),
    }
    summary = (
        f"{retained:.2f} [{low:.2f}, {high:.2f}] of the speedup is left: {faster:.2f}x on "
        f"{len(timed.cases)} unseen configs, {known:.2f}x on {len(visible)} visible ones"
    )
    cases = [{**case, "class": classes[case["config"]]} for case in timed.cases]
    return replace(timed, gate=GATE, summary=summary, cases=cases, extra=extra)
