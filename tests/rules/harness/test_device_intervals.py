"""Intervals of speedups on devices, held against the same suite on four leases of H200s.

``device_leases.json`` has for each config, lease, and side (candidate, baseline) the time per call
of each process, in ns. ``device_pairs.json`` has the configs that two of five later leases have in
common, one of either kind of machine (``results/h200``): bytes of a call, and for each of the two
the times of candidate and baseline in ns, and half the interval of the log ratio without what
machines differ by.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
from pathlib import Path

import device_doubles
import pytest

from perf.confidence import mean_ratio  # isort: skip
from perf.device_figures import Machines, widened  # isort: skip
from terms.perf import ON_DEVICE, PerfPolicy  # isort: skip

LEASES = json.loads(Path(__file__).with_name("device_leases.json").read_text())
PAIRS = json.loads(Path(__file__).with_name("device_pairs.json").read_text())
H200_MEMORY = 4.917e12  # bytes a second, by the clock and width that it reports
POLICY = PerfPolicy(**{**ON_DEVICE, "budget_seconds": math.inf})
MACHINES = 0.0037
"""The standard deviation of a log ratio between leases: the root of the median over configs of the
variance that their processes do not explain."""

SIMULATED = 10


def intervals(spread):
    """By config, the figures of the leases."""
    return [
        [
            widened(mean_ratio(*[[[ns] for ns in side] for side in lease]), spread)
            for lease in leases
        ]
        for leases in LEASES.values()
    ]


def share(found):
    found = list(found)
    return sum(found) / len(found)


def overlapping(spread):
    return share(
        one.low <= other.high and other.low <= one.high
        for figures in intervals(spread)
        for one, other in itertools.combinations(figures, 2)
    )


def test_what_leases_differ_by_is_what_simulations_assume():
    excess = []
    for leases, figures in zip(LEASES.values(), intervals(0.0), strict=True):
        if len(leases) > 2:
            within = [sum(variance(side) / len(side) for side in lease) for lease in leases]
            between = statistics.variance(math.log(one.value) for one in figures)
            excess.append(between - statistics.fmean(within))

    assert math.sqrt(statistics.median(excess)) == pytest.approx(MACHINES, rel=0.02)


def test_intervals_of_two_leases_overlap():
    assert overlapping(POLICY.machine_spread) >= 0.98
    assert overlapping(0.0) < 0.95  # a lease's own noise does not explain the others


def test_an_interval_holds_what_other_leases_find():
    """In 91 % of all cases if it were one of 95 %: the others' mean is uncertain, too."""
    held = []
    for figures in intervals(POLICY.machine_spread):
        for own in figures:
            others = [math.log(one.value) for one in figures if one is not own]
            if len(others) == 3:
                held.append(math.log(own.low) <= statistics.fmean(others) <= math.log(own.high))

    assert share(held) >= 0.88


@pytest.mark.parametrize(
    ("waiting", "least", "most"), [(POLICY.waiting_spread, 0.95, 1.0), (0.0, 0.0, 0.8)]
)
def test_two_kinds_of_machines_agree_only_if_intervals_hold_what_they_differ_by(
    waiting, least, most
):
    machines = Machines(POLICY.machine_spread, waiting, H200_MEMORY)
    agreeing, usual = [], []
    for _, moved_bytes, *both in PAIRS:
        ends = []
        for candidate_ns, baseline_ns, noise in both:
            spread = machines.between(moved_bytes, candidate_ns, baseline_ns)
            half, middle = math.hypot(noise, spread), math.log(baseline_ns / candidate_ns)
            ends.append((middle - half, middle + half))
            usual.append(spread == machines.spread)
        (low, high), (other_low, other_high) = ends
        agreeing.append(low <= other_high and other_low <= high)

    assert least <= share(agreeing) <= most
    assert share(usual) == 1.0 if not waiting else 0.1 <= share(usual) <= 0.2


@pytest.fixture
def simulated(monkeypatch):
    """Timings of the recorded configs, if both sides are equal, and the mean number of processes.

    Processes vary as the recorded ones, and leases by ``MACHINES``.
    """
    source = random.Random(1)
    spreads = {
        name: {
            side: math.sqrt(statistics.fmean(variance(lease[place]) for lease in leases))
            for place, side in enumerate(("candidate", "baseline"))
        }
        for name, leases in LEASES.items()
    }
    timings, processes = [], []
    for _ in range(SIMULATED):
        lease = {name: source.gauss(0.0, MACHINES) for name in LEASES}

        def draw(name, side, _number, lease=lease):
            level = lease[name] if side == "baseline" else 0.0
            return [1e5 * math.exp(source.gauss(level, spreads[name][side]))]

        meter = device_doubles.Meter(draw)
        found, _, _ = device_doubles.timed(monkeypatch, meter, list(LEASES), POLICY)
        timings += found
        processes += [len(configs) / len(LEASES) for configs in meter.rounds]
    return timings, sum(processes) / SIMULATED


def test_the_gate_stops_when_its_intervals_are_narrow_and_hold_the_truth(simulated):
    timings, processes = simulated

    assert share(timing.ratio.low <= 1.0 <= timing.ratio.high for timing in timings) >= 0.92
    assert share(timing.figures.noise <= POLICY.half_width for timing in timings) >= 0.88
    assert 3.0 < processes < 5.5


def variance(side):
    return statistics.variance(map(math.log, side))
