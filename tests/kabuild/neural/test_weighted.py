"""What counts of a part's speedup: the rule of ``kabuild.model.speedup``, as in every report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kabuild.model.label import Label
from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.neural.ledger import reason, render_parts
from kabuild.neural.optimise import surely_faster
from kabuild.neural.spending import Attempt, End, Left, Rules, Standing
from kabuild.neural.verify import Replaced, Verified, predicted, render
from kabuild.neural.weighted import weighted

RULES = Rules(budget=1000, part_budget=500, session=100)
PART = Standing("linear", share=0.5, roof_share=0.01)


def case(before: float, after: float, **ends: float) -> dict[str, Any]:
    return {"baseline_ns": before, "candidate_ns": after, **ends}


NOISY = case(848, 100, low=1.9, high=17.3)
"""A median of 8.48x, which 'kabuild test' shows as ``~1.90x``."""
CLEAR = case(848, 100, low=8, high=9)


def replaced(speedup: Speedup | None, share: float = 0.5) -> Replaced:
    result = TaskResult(Label("tasks/net/linear", "linear"), {})
    return Replaced("linear", result, share, speedup, "")


def test_of_a_wide_interval_the_lower_end_counts() -> None:
    found = weighted([NOISY], [3])

    assert found == Speedup(1.9, 1.9, 17.3)
    assert str(found) == "~1.90x"
    assert str(weighted([CLEAR], [3])) == "8.48x ±6 %"


def test_configs_are_weighted_with_their_calls() -> None:
    cases = [case(100, 50, low=1.9, high=2.1), case(300, 300, low=0.9, high=1.1)]

    found = weighted(cases, [3, 1])

    assert found is not None
    assert found.value == pytest.approx(600 / 450)
    assert found.low == pytest.approx(600 / (300 / 1.9 + 300 / 0.9))
    assert found.high == pytest.approx(600 / (300 / 2.1 + 300 / 1.1))


def test_a_noisy_config_beside_others_counts_as_twice_its_lower_end() -> None:
    found = weighted([case(100, 10, low=1, high=12), case(300, 300, low=1, high=1.1)], [1, 1])

    assert found is not None
    assert not found.wide
    assert found.value == pytest.approx(400 / (100 / 2 + 300))


@pytest.mark.parametrize(
    ("cases", "calls"),
    [([], []), ([CLEAR], [1, 1]), ([case(0, 1)], [1]), ([{"baseline_ns": 1}], [1]), ([CLEAR], [0])],
)
def test_without_a_time_of_each_config_there_is_none(
    cases: list[dict[str, Any]], calls: list[int]
) -> None:
    assert weighted(cases, calls) is None


def test_without_intervals_the_times_count() -> None:
    assert weighted([case(848, 100)], [1]) == Speedup(8.48)


def test_a_prediction_uses_what_is_known_and_says_so() -> None:
    noisy, clear = replaced(weighted([NOISY], [1])), replaced(weighted([CLEAR], [1]))

    for part, expected, told in ((noisy, 1.9, "~1.31x"), (clear, 8.48, "1.79x ±0.6 %")):
        found = Verified((part,), {}, predicted([part]), (), ())
        assert found.predicted is not None
        assert found.predicted.value == pytest.approx(1 / (0.5 + 0.5 / expected))
        assert f"by their shares: {told}" in render(found)
        parts = json.loads(json.dumps(found.to_json()))["parts"]
        assert parts[0]["speedup"] == pytest.approx(expected)
    assert predicted([noisy, replaced(None, 0.1)]) is None
    assert predicted([replaced(Speedup(2.0))]) == Speedup(1 / 0.75)


def test_noise_is_no_reason_to_leave_a_part() -> None:
    """``--enough=2``: it may be 8 times as fast, and 1.9 times is what is known."""
    noisy = PART.after(Attempt(1.9, 10, least=True), RULES)

    assert noisy.left(RULES) is None
    assert "~1.90x" in render_parts([noisy], RULES, End.BUDGET)
    faster = noisy.after(Attempt(2.5, 10), RULES)
    assert (faster.left(RULES), faster.least) == (Left.FAST_ENOUGH, False)
    assert "it is 2.50x as fast" in reason(faster, RULES)
    known = faster.after(Attempt(2.2, 10, least=True), RULES)
    assert (known.speedup, known.least) == (2.5, False)


@pytest.mark.parametrize(
    ("speedup", "sure"),
    [
        (Speedup(1.2), True),
        (Speedup(1.2, 0.9, 1.5), False),
        (Speedup(1.9, 1.9, 17.3), True),
        (Speedup(0.5, 0.5, 5.0), False),
    ],
)
def test_a_kernel_is_faster_if_noise_does_not_explain_it(speedup: Speedup, sure: bool) -> None:
    assert surely_faster(speedup) is sure
