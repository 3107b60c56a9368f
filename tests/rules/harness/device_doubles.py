"""The perf gate of devices with times that a test makes up."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

from types import SimpleNamespace

from base.program import Argument, Config, Signature  # isort: skip
from gpu import session  # isort: skip
from perf import device_gate  # isort: skip
from perf.device_budget import GIB, Budget  # isort: skip
from perf.device_gate import DeviceGate  # isort: skip
from perf.gate_samples import GateSample, SidePlan, Taken  # isort: skip
from perf.oracle_memory import Verification  # isort: skip
from perf.phases import Phases  # isort: skip
from perf.plan import SIDES  # isort: skip
from truth.judge import Judge  # isort: skip

SIGNATURE = Signature((Argument("x", "T", ("n",)),), (Argument("y", "T", ("n",)),), (), ("n",))
SLOTS = 10
MIB = 1 << 20


def config(name: str) -> Config:
    """A config with this name."""
    return Config(name, {"n": 1024}, "f32", {})


class Meter:
    """Rounds that take a second for each config.

    ``draw(name, side, number)`` gives the times per call of one process, in ns: its samples.
    """

    def __init__(self, draw):
        self._draw = draw
        self.rounds = []
        self.modes = {}
        self.graphs = {}
        self.empties = SimpleNamespace(sides={}, applied=lambda _, taken: taken)
        self.phases = Phases()
        self.seconds = 0.0

    def round(self, number, configs, planned):
        """What one process a side gives for the configs."""
        self.rounds.append([config.name for config in configs])
        self.seconds += len(configs)
        return {
            config.name: {side: self._taken(config, number, planned, side) for side in SIDES}
            for config in configs
        }

    def _taken(self, config, number, planned, side):
        planned(side, None, config)
        times = [round(SLOTS * time) for time in self._draw(config.name, side, number)]
        return Taken([GateSample(SLOTS, "gate", time, time, time, 0) for time in times])


def timed(monkeypatch, meter, names, policy, choice=""):
    """What the gate finds for configs of these names: timings, why it stopped, rounds.

    With ``choice``, the file that says what a PyTorch baseline is timed as.
    """
    arrange(monkeypatch, meter)
    spec = spec_of(names, abi="torch" if choice else "hip", choice=choice)
    return DeviceGate(spec, None, policy, now=lambda: meter.seconds).measure()


def arrange(monkeypatch, meter):
    """Have a gate on a device find ``meter``, and no device."""
    monkeypatch.setattr(Budget, "of_device", lambda _: Budget.of(8 * GIB, 8 * GIB, 1.0))
    monkeypatch.setattr(session, "cache_bytes", lambda: 1 << 20)
    monkeypatch.setattr(session, "memory_speed", lambda: 100e6)  # calls of 100 us have 82 % of it
    monkeypatch.setattr(session, "give_back", lambda: None)
    monkeypatch.setattr(Judge, "assemble", lambda *_: None)
    monkeypatch.setattr(Verification, "of", lambda *_: Verification(MIB, MIB, counted=True))
    for name, double in (
        ("Asides", SimpleNamespace(prepare=lambda: None)),
        ("GatedMeter", meter),
        ("Pilot", SimpleNamespace(plan=lambda *_: SidePlan(1e5, SLOTS, "gate"))),
    ):
        monkeypatch.setattr(device_gate, name, lambda *_, double=double, **__: double)


def spec_of(names, *, abi, choice=""):
    """The spec of a gate on a device, with configs of these names."""
    return SimpleNamespace(
        configs=tuple(map(config, names)),
        signature=SIGNATURE,
        flops="0",
        baseline=SimpleNamespace(abi=abi),
        choice=choice,
    )
