"""What one config's samples come to: the judge's times, and how sure their ratio is."""

from __future__ import annotations

import pytest
from base.program import Batch, Config
from perf.audit import Clock
from perf.plan import Plan, Sample, Series
from perf.timing import Figures

PLAN = Plan(Config("f32 n=1", {"n": 1}, "f32", {}), slots=10)
TRUE = {"candidate": 1_000_000, "baseline": 2_000_000}
EMPTY = 50_000
LATE = 3_000_000
ROUNDS = 3
Late = dict[str, set[tuple[int, int]]]


def figures(late: Late, reported: float = 1.0, true: dict[str, int] | None = None) -> Figures:
    """Of a candidate that takes half the baseline's time, with these batches late: round, batch.

    The candidate reports a share of its time.
    """
    clock = Clock(tolerance_ns=1e6, share=0.1)
    clock.calibrate(Batch((), reported_ns=0, wall_ns=EMPTY))
    series = Series()
    for side, ns in (true or TRUE).items():
        told = int(ns * (reported if side == "candidate" else 1))
        for round_ in range(ROUNDS):
            walls = (
                ns + EMPTY + LATE * ((round_, batch) in late.get(side, ())) for batch in (0, 1)
            )
            process = [Sample(PLAN.slots, told, wall) for wall in walls]
            (series.candidate if side == "candidate" else series.baseline).append(process)
    return Figures.of(PLAN, series, clock)


@pytest.mark.parametrize("reported", [1.0, 0.5, 1e-6, 1.0 + EMPTY / 1e6])
def test_what_a_runner_reports_moves_no_figure(reported: float) -> None:
    found = figures({}, reported)

    assert (found.candidate_ns, found.baseline_ns) == pytest.approx((100_000, 200_000))
    assert found.ratio == figures({}).ratio


@pytest.mark.parametrize(
    ("late", "value"),
    [
        ({}, 2.0),
        ({"candidate": {(1, 0), (1, 1)}}, 2.0),  # one process of three
        ({"candidate": {(1, 0), (1, 1), (0, 1), (0, 0)}}, 0.5),
        ({"candidate": {(1, 0), (1, 1), (0, 1), (0, 0)}, "baseline": {(0, 0), (0, 1)}}, 0.5),
    ],
)
def test_late_batches_count_by_the_median_of_the_processes(late: Late, value: float) -> None:
    found = figures(late)

    assert found.ratio.value == pytest.approx(value)
    assert found.ratio.value == pytest.approx(found.baseline_ns / found.candidate_ns)
    assert (found.ratio.low > 1.9) == (not late)


def test_no_time_is_shorter_than_an_empty_batch() -> None:
    found = figures({}, true={"candidate": 10, "baseline": 2_000_000})

    assert found.candidate_ns == pytest.approx(EMPTY / PLAN.slots)


def test_a_short_baseline_counts_as_an_empty_batch_and_its_true_time_is_in_the_interval() -> None:
    """So that equal programs have equal times, and none that is slower is surely not."""
    found = figures({}, true={"candidate": 1_000_000, "baseline": 10})

    assert found.baseline_ns == pytest.approx(EMPTY / PLAN.slots)
    assert found.ratio.low == pytest.approx(10 / 1_000_000, rel=0.1)
    equal = figures({}, true={"candidate": 10, "baseline": 10})
    assert equal.candidate_ns == equal.baseline_ns
    assert equal.ratio.low <= equal.ratio.value == 1.0
