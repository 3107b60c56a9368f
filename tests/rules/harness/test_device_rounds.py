"""In how many rounds the perf gate measures on a device, and which configs."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import device_doubles
import pytest

from gpu import session  # isort: skip
from perf import gate  # isort: skip
from perf.device_gate import DeviceGate  # isort: skip
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


def test_a_config_that_does_not_keep_memory_busy_is_less_certain_and_not_timed_more(monkeypatch):
    busy, slow = QUIET, "f32 n=512"
    factor = {(slow, "baseline"): 3.0}
    meter = device_doubles.Meter(
        lambda name, side, number: [
            time * factor.get((name, side), 1.0) for time in drawn(QUIET, side, number)
        ]
    )

    policy = PerfPolicy(**{**vars(POLICY), "waiting_spread": 0.018})
    timings, why, rounds = device_doubles.timed(monkeypatch, meter, (busy, slow), policy)

    assert (why, rounds) == ("half_width", 3)
    noise = timings[0].figures.noise
    assert noise == pytest.approx(timings[1].figures.noise, rel=0.01)
    assert timings[0].ratio.half_width == pytest.approx(noise)
    assert timings[1].ratio.half_width == pytest.approx(math.hypot(noise, 0.018), rel=0.01)


def test_a_verdict_says_how_wide_the_noise_is_not_what_machines_differ_by(monkeypatch):
    device_doubles.arrange(monkeypatch, device_doubles.Meter(drawn))
    monkeypatch.setattr(gate, "_refuse_implausible", lambda *_: None)
    monkeypatch.setattr(DeviceGate, "samples", lambda _: b"{}")
    spec = device_doubles.spec_of((QUIET,), abi="hip")

    policy = PerfPolicy(**{**vars(POLICY), "machine_spread": 0.5})
    verdict = gate._run_on_device(spec, None, policy)

    (case,) = verdict.cases
    stop = verdict.extra["stop"]
    assert (stop["reason"], stop["half_width"]) == ("half_width", case["noise"])
    assert case["noise"] < 0.01 < math.log(case["high"] / case["speedup"])


@pytest.mark.parametrize(
    ("told", "speed"),
    [
        ({"memory_clock_rate": 3_201_000, "memory_bus_width": 6144}, 4.917e12),  # an H200
        ({}, 0.0),
    ],
)
def test_the_speed_of_memory_follows_from_what_a_device_reports(monkeypatch, told, speed):
    accelerator = SimpleNamespace(get_device_properties=lambda _: SimpleNamespace(**told))
    monkeypatch.setattr(session, "accelerator", lambda: accelerator)

    assert session.memory_speed() == pytest.approx(speed, rel=1e-3)
