"""In how many rounds the perf gate measures on a device, and which configs."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from base.program import Argument, Config, Signature  # isort: skip
from gpu import session  # isort: skip
from perf import device_budget, device_gate  # isort: skip
from perf.device_budget import GIB, Budget  # isort: skip
from perf.device_gate import DeviceGate  # isort: skip
from perf.gate_samples import GateSample, SidePlan, Taken  # isort: skip
from perf.plan import SIDES  # isort: skip
from terms.perf import PerfPolicy  # isort: skip
from truth.judge import Judge  # isort: skip

SIGNATURE = Signature((Argument("x", "T", ("n",)),), (Argument("y", "T", ("n",)),), (), ("n",))
QUIET, NOISY = (Config(f"f32 n={n}", {"n": n}, "f32", {}) for n in (1024, 2048))
POLICY = PerfPolicy(half_width=0.01, max_processes=5, budget_seconds=15.0, machine_spread=0.0)


class Meter:
    """Rounds of 2 s in which one config's times vary by 10 %."""

    def __init__(self):
        self.rounds = []
        self.graphs, self.empties = {}, SimpleNamespace(sides={})
        self.seconds = 0.0

    def round(self, number, configs, planned):
        self.rounds.append([config.name for config in configs])
        self.seconds += len(configs)
        source = random.Random(number)
        return {
            config.name: {side: self._taken(config, source, planned, side) for side in SIDES}
            for config in configs
        }

    def _taken(self, config, source, planned, side):
        planned(side, None, config)
        width = 0.1 if config is NOISY else 0.001
        times = [round(1e6 * (1 + width * source.random())) for _ in range(2)]
        return Taken([GateSample(10, "gate", time, time, time, 0) for time in times])


@pytest.fixture
def measured(monkeypatch):
    meter = Meter()
    monkeypatch.setattr(Budget, "of_device", lambda _: Budget.of(8 * GIB, 8 * GIB, 1.0))
    monkeypatch.setattr(session, "cache_bytes", lambda: 1 << 20)
    monkeypatch.setattr(device_budget, "give_back", lambda: None)
    monkeypatch.setattr(Judge, "assemble", lambda *_: None)
    for name, double in (
        ("Asides", SimpleNamespace(prepare=lambda: None)),
        ("GatedMeter", meter),
        ("Pilot", SimpleNamespace(plan=lambda *_: SidePlan(1e5, 10, "gate"))),
    ):
        monkeypatch.setattr(device_gate, name, lambda *_, double=double, **__: double)
    spec = SimpleNamespace(
        configs=(QUIET, NOISY), signature=SIGNATURE, flops="0", baseline=SimpleNamespace(abi="hip")
    )

    def measure(policy):
        gate = DeviceGate(spec, None, policy, now=lambda: meter.seconds)
        return gate.measure(), meter.rounds

    return measure


def test_more_rounds_are_for_configs_whose_interval_is_wide(measured):
    (timings, why, rounds), asked = measured(POLICY)

    both = [QUIET.name, NOISY.name]
    assert asked == [both, both, both, [NOISY.name], [NOISY.name]]
    assert (why, rounds) == ("max_processes", 5)
    quiet, noisy = (timing.ratio.half_width for timing in timings)
    assert quiet < POLICY.half_width < noisy


def test_a_round_that_does_not_fit_the_budget_is_not_begun(measured):
    policy = PerfPolicy(**{**vars(POLICY), "budget_seconds": 7.5})

    (_, why, rounds), asked = measured(policy)

    assert (why, rounds) == ("budget", 4)  # 6 s for three of two configs, 1 s for one of one
    assert asked[3] == [NOISY.name]


def test_narrow_intervals_take_the_least_number_of_processes(measured):
    (_, why, rounds), asked = measured(PerfPolicy(**{**vars(POLICY), "half_width": 1.0}))

    assert (why, rounds, len(asked)) == ("half_width", 3, 3)
