"""The interval of a speedup holds the truth as often as it says."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perf.confidence import ratio, typical

times = st.floats(1e2, 1e9)
sides = st.lists(st.lists(times, min_size=1, max_size=3), min_size=1, max_size=5)


def simulated(source, level, between, within, processes=3, samples=2):
    """Times of one side: processes differ, samples within one differ less, some are slow."""
    made = []
    for _ in range(processes):
        middle = level + source.gauss(0, between)
        slow = [5 if source.random() < 0.1 else 1 for _ in range(samples)]
        made.append([math.exp(middle + abs(source.gauss(0, within)) * s) for s in slow])
    return made


@pytest.mark.parametrize(("between", "within"), [(0.02, 0.02), (0.0, 0.02), (0.05, 0.01)])
def test_the_interval_holds_a_known_ratio(between, within):
    source = random.Random(7)
    held = 0
    for seed in range(200):
        candidate = simulated(source, 0.0, between, within)
        baseline = simulated(source, math.log(1.35), between, within)
        found = ratio(candidate, baseline, seed)
        held += found.low <= 1.35 <= found.high

    assert held >= 0.93 * 200


def test_equal_programs_are_hardly_ever_faster():
    source = random.Random(11)
    faster = 0
    for seed in range(200):
        sides = [simulated(source, 0.0, 0.02, 0.02) for _ in range(2)]
        faster += ratio(sides[0], sides[1], seed).faster

    assert faster <= 0.05 * 200


def test_a_clear_gain_is_found():
    source = random.Random(3)
    candidate = simulated(source, 0.0, 0.02, 0.02)
    baseline = simulated(source, math.log(2.0), 0.02, 0.02)

    assert ratio(candidate, baseline, 0).faster


@settings(max_examples=50, deadline=None)
@given(sides, sides, st.integers(0, 1 << 30))
def test_the_interval_surrounds_the_ratio_and_repeats(candidate, baseline, seed):
    found = ratio(candidate, baseline, seed)

    assert found == ratio(candidate, baseline, seed)
    assert 0 < found.low <= found.value <= found.high
    assert found.value == pytest.approx(
        math.exp(
            typical([[math.log(t) for t in p] for p in baseline])
            - typical([[math.log(t) for t in p] for p in candidate])
        )
    )


@settings(max_examples=30, deadline=None)
@given(sides, st.floats(0.01, 100))
def test_scaling_one_side_scales_the_ratio(side, factor):
    scaled = [[time * factor for time in process] for process in side]

    assert ratio(side, scaled, 0).value == pytest.approx(factor)


@pytest.mark.parametrize(
    "side", [[], [[]], [[1.0], []], [[0.0]], [[-1.0]], [[math.nan]], [[math.inf]]]
)
def test_times_without_a_ratio_are_refused(side):
    with pytest.raises(ValueError, match=r"samples|positive"):
        ratio(side, [[1.0]], 0)
    with pytest.raises(ValueError, match=r"samples|positive"):
        ratio([[1.0]], side, 0)
