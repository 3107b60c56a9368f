"""What checks will take, from what they took."""

from __future__ import annotations

import pytest
from costs import MARGIN, Costs
from hypothesis import given
from hypothesis import strategies as st


def test_before_any_check_nothing_is_known() -> None:
    costs = Costs()

    assert costs.bound("perf", 3.0) == 0.0
    assert costs.affordable("perf", 100.0) == 0.0


def test_the_dearest_of_a_kind_counts() -> None:
    costs = Costs()
    for seconds in (4.0, 6.0, 5.0):
        costs.note("perf", seconds, 1.0)

    assert costs.bound("perf", 1.0) == MARGIN * 6.0


def test_a_kind_that_is_new_is_taken_to_cost_what_any_other_does() -> None:
    costs = Costs()
    costs.note("perf", 5.0, 1.0)
    costs.note("perf", 14.0, 3.0)
    costs.note("compile", 2.0)

    assert costs.bound("correctness") == MARGIN * 5.0
    costs.note("correctness", 1.5)
    assert costs.bound("correctness") == MARGIN * 1.5


@given(st.floats(0.1, 10.0), st.floats(0.0, 5.0), st.floats(0.1, 10.0), st.floats(0.1, 60.0))
def test_the_bound_holds_where_a_check_takes_time_by_itself(
    own: float, factor: float, first: float, later: float
) -> None:
    costs = Costs()
    costs.note("perf", own + factor * first, first)

    assert costs.bound("perf", later) >= min(own + factor * later, own + factor * first) - 1e-9
    if later >= first:
        assert costs.bound("perf", later) >= own + factor * later - 1e-9


@given(st.floats(0.1, 100.0))
def test_what_is_affordable_fits(left: float) -> None:
    costs = Costs()
    costs.note("perf", 5.0, 1.0)
    costs.note("perf", 8.0, 3.0)
    afforded = costs.affordable("perf", left)

    assert (afforded == 0.0) is (left < MARGIN * 5.0)
    if afforded:
        assert costs.bound("perf", afforded) == pytest.approx(left)
