"""The interval of a speedup holds the truth as often as it says."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perf.confidence import _quantile, mean_ratio, mean_time, ratio, typical

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


@pytest.mark.parametrize("processes", [(3, 3), (5, 5), (3, 7)])
@pytest.mark.parametrize("spreads", [(0.004, 0.004), (0.02, 0.001), (0.001, 0.02)])
def test_the_interval_of_means_holds_a_known_ratio(processes, spreads):
    source = random.Random(5)
    held, seen = 0, 1000
    for _ in range(seen):
        candidate, baseline = (
            [[math.exp(source.gauss(level, spread))] for _ in range(count)]
            for level, spread, count in zip((0.0, math.log(1.35)), spreads, processes, strict=True)
        )
        found = mean_ratio(candidate, baseline)
        held += found.low <= 1.35 <= found.high

    assert 0.935 * seen <= held <= 0.985 * seen


@settings(max_examples=50, deadline=None)
@given(sides, sides)
def test_the_interval_of_means_surrounds_their_ratio(candidate, baseline):
    found = mean_ratio(candidate, baseline)

    assert found.value == pytest.approx(mean_time(baseline) / mean_time(candidate))
    assert 0 <= found.low <= found.value <= found.high


def test_processes_that_agree_have_no_interval():
    assert mean_ratio([[2.0]] * 3, [[3.0], [3.0]]).half_width == 0.0
    one_varies = mean_ratio([[2.0]] * 3, [[3.0], [3.1], [3.2]])
    assert one_varies.half_width == pytest.approx(4.3027 * spread_of([3.0, 3.1, 3.2]), rel=1e-3)


def test_a_side_of_one_process_has_the_interval_of_its_samples():
    one, other = [[1.0, 1.01]], [[2.0, 2.02], [2.0, 2.01], [2.01, 2.02]]

    assert mean_ratio(one, other).half_width == pytest.approx(ratio(one, other, 0).half_width)


@pytest.mark.parametrize("freedom", [1.0, 2.0, 2.3, 2.6, 3.5, 4.0, 7.0, 9.0, 12.0, 22.0, 100.0])
def test_quantiles_are_those_of_students_distribution(freedom):
    assert 0.975 - 1e-5 <= below(_quantile(freedom), freedom) <= 0.976


def below(bound, freedom, steps=2000):
    """Student's distribution function, by Simpson's rule."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    scale /= math.sqrt(freedom * math.pi)
    width = bound / steps
    heights = [(1 + (i * width) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps + 1)]
    inner = 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])
    return 0.5 + scale * width / 3 * (heights[0] + inner + heights[-1])


def spread_of(times):
    """The standard error of their logarithms' mean."""
    return statistics.stdev(map(math.log, times)) / math.sqrt(len(times))


@pytest.mark.parametrize(
    "side", [[], [[]], [[1.0], []], [[0.0]], [[-1.0]], [[math.nan]], [[math.inf]]]
)
def test_times_without_a_ratio_are_refused(side):
    with pytest.raises(ValueError, match=r"samples|positive"):
        ratio(side, [[1.0]], 0)
    with pytest.raises(ValueError, match=r"samples|positive"):
        ratio([[1.0]], side, 0)
    with pytest.raises(ValueError, match=r"samples|positive"):
        mean_ratio(side, [[1.0]] * 2)
