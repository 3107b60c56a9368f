"""In how many rounds the perf gate measures on a device, and which configs."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random

import device_doubles
import pytest

from terms.perf import PerfPolicy  # isort: skip

QUIET, NOISY = "f32 n=1024", "f32 n=2048"
POLICY = PerfPolicy(half_width=0.01, max_processes=5, budget_seconds=15.0, machine_spread=0.0)


def drawn(name, side, number):
    """Times that vary by 10 % in one config."""
    source = random.Random(f"{name} {side} {number}")
    width = 0.1 if name is NOISY else 0.001
    return [1e5 * (1 + width * source.random()) for _ in range(2)]


@pytest.fixture
def measured(monkeypatch):
    meter = device_doubles.Meter(drawn)

    def measure(policy):
        return device_doubles.timed(monkeypatch, meter, (QUIET, NOISY), policy), meter.rounds

    return measure


def test_more_rounds_are_for_configs_whose_interval_is_wide(measured):
    (timings, why, rounds), asked = measured(POLICY)

    both = [QUIET, NOISY]
    assert asked == [both, both, both, [NOISY], [NOISY]]
    assert (why, rounds) == ("max_processes", 5)
    quiet, noisy = (timing.figures.noise for timing in timings)
    assert quiet < POLICY.half_width < noisy


def test_a_round_that_does_not_fit_the_budget_is_not_begun(measured):
    policy = PerfPolicy(**{**vars(POLICY), "budget_seconds": 7.5})

    (_, why, rounds), asked = measured(policy)

    assert (why, rounds) == ("budget", 4)  # 6 s for three of two configs, 1 s for one of one
    assert asked[3] == [NOISY]


def test_narrow_intervals_take_the_least_number_of_processes(measured):
    (_, why, rounds), asked = measured(PerfPolicy(**{**vars(POLICY), "half_width": 1.0}))

    assert (why, rounds, len(asked)) == ("half_width", 3, 3)
