"""Slots, memory and figures of what is timed behind a gate."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

import math
import random

import pytest

from base.program import Argument, Config, MachineFault, Signature  # isort: skip
from perf.device_budget import GIB, RESERVE, Budget  # isort: skip
from perf.confidence import Ratio  # isort: skip
from perf.device_figures import DeviceFigures, DeviceTiming, Machines, widened  # isort: skip
from perf.device_plan import Need, Wishes, fitting  # isort: skip
from perf.oracle_memory import Verification  # isort: skip
from perf.gate_samples import DevicePlan, Empties, GateSample, Taken  # isort: skip

SIGNATURE = Signature(
    (Argument("x", "T", ("rows", "cols")),), (Argument("y", "T", ("rows", "cols")),), (), ("rows",)
)
CONFIG = Config("f32", {"rows": 1024, "cols": 1024}, "f32", {})
MIB = 1 << 20
NEED = Need.of(SIGNATURE, CONFIG, Verification(48 * MIB, 40 * MIB, counted=True))
MACHINES = Machines(0.0075, 0.0, 0.0)
PLAN = DevicePlan(CONFIG, {"candidate": 32, "baseline": 32})


def wishes(**changes):
    usual = {"batch_ns": 5e5, "cold_bytes": 180 * MIB, "most_slots": 128, "tensor_bytes": 30 * GIB}
    return Wishes(**{**usual, "needs": {CONFIG.name: NEED}, **changes})


@pytest.mark.parametrize(
    ("call_ns", "changes", "slots"),
    [
        (5_000.0, {}, 100),  # long enough
        (100_000.0, {}, 23),  # cold: 8 MiB a call
        (1_000.0, {}, 128),  # no more than that
        (1_000.0, {"tensor_bytes": NEED.bytes(7)}, 7),
        (1_000.0, {"tensor_bytes": 0}, 1),
    ],
)
def test_a_batch_is_as_long_as_time_caches_and_memory_want(call_ns, changes, slots):
    assert wishes(**changes).slots(SIGNATURE, CONFIG, call_ns) == slots


@pytest.mark.parametrize(("seconds", "slots"), [(0.001, 100), (0.012, 20), (3.0, 1)])
def test_a_batch_of_calls_that_take_the_host_long_has_few(seconds, slots):
    assert wishes().slots(SIGNATURE, CONFIG, 5_000.0, seconds) == slots


def test_what_is_delivered_fits_into_one_slice_of_the_device():
    large = Config("f32", {"rows": 8192, "cols": 8192}, "f32", {})

    assert wishes(most_slots=999).slots(SIGNATURE, large, 1.0) == 4  # 256 MiB each, 1 GiB in all


@pytest.mark.parametrize(("launches", "slots"), [(1, 128), (10, 64), (40, 16), (2000, 0)])
def test_calls_of_many_launches_get_fewer_slots(launches, slots):
    assert fitting(128, lambda count: count * launches <= 1000) == slots


def test_nobody_takes_more_than_a_share_or_than_others_leave():
    assert Budget.of(140 * GIB, 139 * GIB, 0.25).allowed_bytes == 35 * GIB
    assert Budget.of(140 * GIB, 139 * GIB, 0.25).most_bytes == 139 * GIB
    assert Budget.of(140 * GIB, 20 * GIB, 0.25).allowed_bytes == 20 * GIB
    assert Budget.of(140 * GIB, 20 * GIB, 0.25).most_bytes == 20 * GIB


def test_what_does_not_fit_is_said_before_anything_runs():
    budget = Budget.of(8 * GIB, 8 * GIB, 0.25)
    assert budget.tensor_bytes == 0
    budget.demand("f32 n=1", 6 * GIB)

    with pytest.raises(MachineFault) as raised:
        budget.demand("f32 n=2", 6 * GIB + 1)
    for said in (
        "DEVICE_MEMORY",
        "f32 n=2",
        "8.00 GiB of the device",
        "8.00 GiB of 8.00 GiB are free",
    ):
        assert said in str(raised.value)
    assert RESERVE == 2 * GIB


def test_the_most_that_a_config_needs_grows_with_its_slots():
    assert NEED.slot == 3 * 4 * MIB + 2 * 4 * MIB
    assert NEED.bytes(3) - NEED.bytes(2) == NEED.slot
    assert NEED.fixed == 48 * MIB + 4 * 4 * MIB
    assert NEED.least == 40 * MIB + 2 * 4 * MIB + NEED.slot


def test_a_candidate_gains_nothing_by_slow_empty_batches():
    empties = Empties()
    empties.sides["baseline"].settled.extend([10_000, 12_000, 11_000])
    empties.sides["candidate"].settled.extend([90_000, 90_000])
    assert empties.of("candidate", "settled") == 11_000
    empties.sides["candidate"].settled[:] = [5_000, 6_000, 5_500]  # a native runner beside Python's
    assert empties.of("candidate", "settled") == 5_500
    assert empties.of("baseline", "settled") == 11_000
    assert empties.of("candidate", "host") == 0.0


def sample(ns, *, at_once=False, clock="gate", slots=32, slowed=0):
    state = {"slowed": slowed}
    return GateSample(slots, clock, ns, ns, ns, 64_000, at_once, 1, state)


def processes(ns, once=None, noise=0.0, seed=0, **how):
    source = random.Random(seed)

    def varied(value):
        return round(value * (1 + source.gauss(0, noise)))

    return [
        Taken(
            [sample(varied(ns), **how) for _ in range(3)],
            [sample(varied(once or ns), at_once=True, **how)],
        )
        for _ in range(3)
    ]


def test_equal_sides_are_equal_within_what_machines_differ_by():
    taken = {"candidate": processes(640_000), "baseline": processes(640_000)}

    figures = DeviceFigures.of(PLAN, taken, 8 * MIB, MACHINES)

    assert (figures.ratio.value, figures.charged_ns) == (1.0, 0.0)
    assert figures.candidate_ns == pytest.approx(20_000)
    assert figures.ratio.high == pytest.approx(math.exp(0.0075))
    assert not figures.ratio.faster


@pytest.mark.parametrize("seed", range(20))
def test_an_honest_candidate_is_charged_next_to_nothing(seed):
    taken = {
        "candidate": processes(500_000, noise=0.004, seed=seed),
        "baseline": processes(500_000, noise=0.004, seed=1000 + seed),
    }

    assert DeviceFigures.of(PLAN, taken, 8 * MIB, MACHINES).charged_ns * 32 < 2_000


@pytest.mark.parametrize("ahead", [20_000, 70_000, 250_000])
def test_work_done_before_the_gate_opens_is_paid_for(ahead):
    taken = {
        "candidate": processes(500_000 - ahead, once=500_000),
        "baseline": processes(500_000),
    }

    figures = DeviceFigures.of(PLAN, taken, 8 * MIB, MACHINES)

    assert figures.charged_ns * 32 == pytest.approx(max(0, ahead - 10_000))
    assert figures.ratio.value < 1.021


def test_a_case_says_which_clock_it_has_and_what_launching_takes():
    taken = {
        "candidate": processes(640_000, clock="host"),
        "baseline": processes(640_000, slowed=0x40),
    }
    case = DeviceTiming.of(PLAN, taken, MACHINES, 8 * MIB, 7).to_json()

    assert (case["clock"], case["baseline_clock"]) == ("host", "gate")
    assert (case["launch_ns"], case["baseline_launch_ns"]) == (None, 2_000.0)
    assert case["throttled"]
    assert (case["slots"], case["bytes"], case["flops"]) == (32, 8 * MIB, 7)


@pytest.mark.parametrize(
    ("memory", "slower", "spread"),
    [
        (1023e9, 1.0, 0.0075),  # 8 MiB in 20 us are 419.4 GB/s: 41 %
        (1076e9, 1.0, math.hypot(0.0075, 0.02)),  # 39 %
        (600e9, 2.0, math.hypot(0.0075, 0.02)),  # the baseline has 35 %
        (420e9, 1.0, 0.0075),
        (419e9, 1.0, math.hypot(0.0075, 0.02)),  # more than memory can: it is not read in full
        (600e9, 0.5, math.hypot(0.0075, 0.02)),  # or the baseline does not
        (0.0, 1.0, math.hypot(0.0075, 0.02)),  # a device that does not say how fast its memory is
    ],
)
def test_where_a_kernel_waits_for_memory_machines_differ_by_more(memory, slower, spread):
    taken = {"candidate": processes(640_000), "baseline": processes(round(640_000 * slower))}

    figures = DeviceFigures.of(PLAN, taken, 8 * MIB, Machines(0.0075, 0.02, memory))

    assert math.log(figures.ratio.high / figures.ratio.value) == pytest.approx(spread)
    assert (figures.noise, figures.to_json()["noise"]) == (0.0, 0.0)


def test_of_what_caches_serve_the_widest_interval_is_told():
    taken = {
        side: [Taken(one.samples, one.at_once, one.samples) for one in processes(640_000)]
        for side in ("candidate", "baseline")
    }

    timing = DeviceTiming.of(PLAN, taken, Machines(0.0075, 0.02, 600e9), 8 * MIB, 7)

    assert timing.ratio.half_width == pytest.approx(0.0075)
    assert timing.warm is not None
    assert timing.warm.ratio.half_width == pytest.approx(math.hypot(0.0075, 0.02))


def test_a_candidate_that_waits_for_memory_widens_the_interval_too():
    taken = {"candidate": processes(640_000 * 2), "baseline": processes(640_000)}

    figures = DeviceFigures.of(PLAN, taken, 8 * MIB, Machines(0.0075, 0.02, 600e9))

    assert figures.ratio.half_width == pytest.approx(math.hypot(0.0075, 0.02))


def test_an_interval_holds_both_kinds_of_differences():
    ratio = widened(Ratio(2.0, 2.0 * math.exp(-0.03), 2.0 * math.exp(0.04)), 0.03)

    assert math.log(2.0 / ratio.low) == pytest.approx(math.hypot(0.03, 0.03))
    assert math.log(ratio.high / 2.0) == pytest.approx(0.05)
