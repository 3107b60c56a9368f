"""Calls repeated on the same inputs are timed beside those that count, and decide nothing."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from itertools import count

import pytest
import torch
from judging_doubles import judge, side_of, softmax, steady


def test_repeated_calls_are_timed_beside_and_decide_nothing(tmp_path):
    """The second half of a batch on the same inputs takes no time: it is in some cache."""

    def caching(program, calls):
        reported, wall = steady(program, calls)
        repeats = calls == 6 and side_of(program) == "candidate" and next(batches) % 4 == 3
        return (reported // 2, wall - reported // 2) if repeats else (reported, wall)

    batches = count()
    verdict, samples, _ = judge(
        tmp_path, clock=caching, min_batch_ms=60.0, budget_seconds=600.0, max_slots=6
    )

    assert verdict.outcome == "PASS", verdict.detail
    for case in verdict.cases:
        assert case["slots"] == 6
        assert (case["speedup"], case["warm"]["speedup"]) == (2.0, 4.0)
        assert (case["warm"]["low"], case["warm"]["high"]) == (4.0, 4.0)
        warm = samples["warm"][case["config"]]
        assert [len(process) for process in warm["candidate"]] == [1, 1, 1]
        assert {s["reported_ns"] for p in warm["baseline"] for s in p} == {120_000_000}
    assert verdict.extra["mean_speedup"] == 2.0


@pytest.mark.parametrize("policy", [{"warm": False}, {"max_slots": 1}])
def test_where_nothing_is_repeated_there_is_no_warm_figure(tmp_path, policy):
    verdict, samples, _ = judge(tmp_path, **policy)

    assert [case["warm"] for case in verdict.cases] == [None, None]
    assert samples["warm"] == {}


def test_what_repeated_calls_leave_is_verified(tmp_path):
    seen: list[torch.Tensor] = []

    def forgets(x, y, scale, **_):
        softmax(x, y, scale)
        if any(torch.equal(x, other) for other in seen):
            y.zero_()
        seen.append(x.clone())

    verdict, _, _ = judge(tmp_path, forgets, budget_seconds=600.0, min_batch_ms=60.0)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")


def test_an_impossible_clock_of_repeated_calls_is_rejected(tmp_path):
    batches = count()

    def backwards(program, calls):
        reported, wall = steady(program, calls)
        repeats = calls == 6 and side_of(program) == "candidate" and next(batches) % 4 == 3
        return (0 if repeats else reported), wall

    verdict, _, _ = judge(
        tmp_path, clock=backwards, min_batch_ms=60.0, budget_seconds=600.0, max_slots=6
    )

    assert (verdict.outcome, verdict.reason) == ("REJECTED", "CLOCK_MISMATCH")
