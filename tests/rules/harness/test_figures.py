"""What one config's samples come to: times that count, and how sure their ratio is."""

from __future__ import annotations

import pytest
from base.program import Batch, Config
from perf.audit import Clock
from perf.measure import Plan, Sample, Series
from perf.timing import Figures

PLAN = Plan(Config("f32 n=1", {"n": 1}, "f32", {}), slots=10)
REPORTED = {"candidate": 1_000_000, "baseline": 2_000_000}
EMPTY = 50_000
LATE = 3_000_000
ROUNDS = 3


def figures(late: dict[str, set[tuple[int, int]]]) -> Figures:
    """Of a candidate that takes half the baseline's time, with these batches late: round, batch."""
    clock = Clock(tolerance_ns=1e6, share=0.1)
    clock.calibrate(Batch((), reported_ns=0, wall_ns=EMPTY))
    series = Series()
    for side, reported in REPORTED.items():
        for round_ in range(ROUNDS):
            walls = (
                reported + EMPTY + LATE * ((round_, batch) in late.get(side, ()))
                for batch in (0, 1)
            )
            process = [Sample(PLAN.slots, reported, wall) for wall in walls]
            (series.candidate if side == "candidate" else series.baseline).append(process)
    return Figures.of(PLAN, series, clock)


@pytest.mark.parametrize(
    ("late", "sure"),
    [
        ({}, True),
        ({"candidate": {(1, 0), (1, 1)}, "baseline": {(1, 0), (1, 1)}}, True),  # the machine
        ({"candidate": {(1, 0), (1, 1)}}, False),
        ({"candidate": {(1, 0)}, "baseline": {(1, 0)}}, False),  # not all of that round
        ({"candidate": {(1, 0), (1, 1)}, "baseline": {(0, 0), (0, 1)}}, False),  # another round
    ],
)
def test_time_is_paid_that_did_not_hold_up_all_of_the_baseline_in_that_round(
    late: dict[str, set[tuple[int, int]]], sure: bool
) -> None:
    found = figures(late)

    assert found.ratio.value == pytest.approx(2.0)
    assert (found.ratio.low > 1.9) == sure


def test_a_lie_in_most_batches_is_paid_in_full_whatever_holds_up_the_others() -> None:
    lie = {(round_, batch) for round_ in (0, 2) for batch in (0, 1)}
    found = figures({"candidate": {*lie, (1, 0), (1, 1)}, "baseline": {(1, 0), (1, 1)}})

    assert found.charged_ns == LATE / PLAN.slots
    assert found.ratio.value == pytest.approx(0.5)
