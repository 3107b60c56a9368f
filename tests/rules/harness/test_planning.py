"""How long batches are: by the judge's clock, whatever a program does while it is planned for."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from itertools import count

import pytest
from base.program import Batch, Config
from judging_doubles import judge, side_of, steady
from perf.audit import Clock
from perf.plan import Plan, Sample
from perf.planning import GROWTH, Bounds, Planner

MS = 1_000_000
CONFIG = Config("f32 n=1", {"n": 1}, "f32", {})


def planner(**changes):
    clock = Clock(tolerance_ns=2 * MS, share=0.1)
    clock.calibrate(Batch((), 0, MS // 10))
    bounds = {
        "min_batch_ns": 10 * MS,
        "max_slots": 64,
        "call_bytes": 1 << 20,
        "cache_bytes": 0,
        "memory_bytes": 1 << 30,
        "batch_seconds": 1.0,
    }
    return Planner(clock, lambda _: Bounds(**{**bounds, **changes}), lambda: 1e-6)


def round_of(candidate_ms, baseline_ms, slots=1, reported=1.0):
    """Two batches a side, by calls of so many ms."""
    times = {"candidate": candidate_ms, "baseline": baseline_ms}
    return {
        side: [Sample(slots, int(ms * slots * MS * reported), int(ms * slots * MS + MS / 10))] * 2
        for side, ms in times.items()
    }


def slots(plan):
    return plan.slots, plan.slots_of("baseline")


def test_a_batch_is_as_long_as_wanted_on_either_side():
    assert slots(planner().first(CONFIG, round_of(0.5, 2.0))) == (20, 5)


@pytest.mark.parametrize(
    ("candidate_ms", "baseline_ms", "found"),
    [(0.01, 2.0, (1, 1)), (2.0, 0.5, (5, 20)), (1.0, 1.0, (1, 1)), (0.9, 0.9, (12, 12))],
)
def test_long_calls_come_one_by_one_as_the_baselines_time_says(candidate_ms, baseline_ms, found):
    """A candidate that is fast in the pilot gets no batch in which it could look ahead."""
    planned = planner(alone_ns=MS)

    plan = planned.first(CONFIG, round_of(candidate_ms, baseline_ms))

    assert slots(plan) == found
    if found == (1, 1):
        assert planned.again(plan, round_of(candidate_ms, baseline_ms)) is None


@pytest.mark.parametrize(
    ("limits", "most"),
    [({"max_slots": 6}, 6), ({"memory_bytes": 3 << 20}, 3), ({"batch_seconds": 0.002}, 4)],
)
def test_no_longer_than_the_limits_allow(limits, most):
    assert planner(**limits).first(CONFIG, round_of(0.5, 0.5)).slots == most


def test_a_report_that_is_too_short_only_makes_batches_longer():
    assert planner().first(CONFIG, round_of(0.5, 2.0, reported=0.5)).slots == 40


def test_batches_that_turn_out_short_are_planned_again():
    plan = Plan(CONFIG, 2, baseline_slots=5)

    assert slots(planner().again(plan, round_of(0.5, 2.0))) == (20, 5)
    assert planner().again(plan, round_of(3.0, 2.0)) is None
    assert planner(max_slots=3).again(plan, round_of(0.5, 2.0)) is None  # not twice as long
    assert planner().again(Plan(CONFIG, 64, baseline_slots=5), round_of(0.001, 2.0)) is None


def pace(slow):
    """A candidate of 5 us a call, but 30 ms where ``slow`` says so, by the number of its batch."""
    batches = count()

    def clock(program, calls):
        if side_of(program) == "baseline" or not calls:
            return steady(program, calls)
        each = 30 * MS if slow(next(batches)) else 5_000
        return calls * each, calls * each + 100_000

    return clock


@pytest.mark.parametrize(
    "slow",
    [
        lambda number: number < 6,  # the pilot
        lambda number: number < 16,  # and a round
        lambda number: number // 10 % 3 == 0,  # some rounds
        lambda number: number < 6 or number % 5 == 0,  # some batches
    ],
)
def test_being_slow_at_times_makes_no_batch_short(tmp_path, monkeypatch, slow):
    monkeypatch.setattr("perf.measure.Meter.seconds_per_call", 1e-6)

    verdict, samples, _ = judge(tmp_path, clock=pace(slow), budget_seconds=10.0)

    assert verdict.outcome == "PASS", verdict.detail
    for case in verdict.cases:
        assert case["slots"] > 64 / GROWTH  # where the pilot's pace would have given 4
        assert case["candidate_ns"] >= 5_000
        assert case["speedup"] <= 20 * MS / 5_000
        for process in samples["configs"][case["config"]]["candidate"]:
            assert {sample["slots"] for sample in process} == {case["slots"]}
