"""The perf gate on a device: which batches to time, and when to stop."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from base import shapes
from base.program import Config
from base.spec import Spec
from gpu import session
from terms.perf import PerfPolicy
from terms.verdict import canonical_json
from truth.judge import Judge
from truth.side import Launching

from perf import machine, plausibility
from perf.asides import Asides
from perf.choice import Choice
from perf.chooser import Chooser
from perf.device_budget import Budget
from perf.device_figures import BySide, DeviceTiming, Machines
from perf.device_plan import Need, Wishes
from perf.gate_samples import DevicePlan, SidePlan
from perf.gate_turn import Held
from perf.gated import GatedMeter
from perf.oracle_memory import Verification
from perf.pilot import Pilot
from perf.plan import SIDES, SideName

COLD_FACTOR = 3


class DeviceGate:
    """One judging on a device."""

    def __init__(
        self,
        spec: Spec,
        launcher: Launching,
        policy: PerfPolicy,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec = spec
        self._policy = policy
        self._now = now
        self._drawn = policy.draw or secrets.randbits(48)
        self._budget = Budget.of_device(policy.memory_share)
        judge = self._judge = Judge.assemble(spec, launcher, policy)
        self._asides = Asides(judge, spec, policy, self._drawn)
        self._meter = GatedMeter(
            judge,
            self._asides,
            self._budget,
            draw=self._drawn,
            warm=policy.warm,
            samples=policy.samples,
        )
        self._machines = Machines(
            policy.machine_spread, policy.waiting_spread, session.memory_speed()
        )
        self._taken: dict[str, BySide] = {
            config.name: {side: [] for side in SIDES} for config in spec.configs
        }
        self._verifying = {
            config.name: Verification.of(judge, spec.signature, config) for config in spec.configs
        }
        self._needs = {
            config.name: Need.of(spec.signature, config, self._verifying[config.name])
            for config in spec.configs
        }
        room = self._budget.tensor_bytes
        self._meter.large = frozenset(
            name for name, need in self._needs.items() if need.large or need.least > room
        )
        wishes = Wishes(
            policy.min_batch_ms * 1e6,
            COLD_FACTOR * session.cache_bytes(),
            policy.max_slots,
            room,
            self._needs,
        )
        self._pilot = Pilot(self._meter, spec.signature, wishes)
        self._plans: dict[tuple[SideName, str], SidePlan] = {}
        self._baselines: Mapping[str, Mapping[str, Any]] = {}
        self._host = [machine.reading()]

    def measure(self) -> tuple[list[DeviceTiming], str, int]:
        """The timing of every config, why measuring stopped, and the number of rounds.

        Raises CandidateFault, TaskFault and MachineFault.
        """
        phases = self._meter.phases
        self.demand_memory()
        with phases.of("choose"):
            choice = self.choose_baseline()
        self._meter.modes.update(choice.modes)
        self._baselines = choice.evidence
        with phases.of("untimed"):
            self._asides.prepare()
        session.give_back()
        rounds, inexact, started = 0, self._spec.configs, self._now()
        while True:
            rounds += 1
            before = self._now()
            with phases.of("other"):
                made = self._meter.round(rounds, inexact, self._planned)
            for name, sides in made.items():
                for side, taken in sides.items():
                    self._taken[name][side].append(taken)
            self._host.append(machine.reading())
            if rounds < self._policy.processes:
                continue
            timings = [self._timing(config) for config in self._spec.configs]
            inexact = tuple(timing.plan.config for timing in timings if self._inexact(timing))
            if not inexact:
                return timings, "half_width", rounds
            again = (self._now() - before) * len(inexact) / len(made)
            if why := self._enough(rounds, self._now() - started + again):
                return timings, why, rounds

    def samples(self) -> bytes:
        """``samples.json``: every reading, used or not."""
        settled = {name: self._settled(name) for name in self._taken}
        return canonical_json(
            {
                "schema": 1,
                "configs": _lists("samples", settled),
                "at_once": _lists("at_once", settled),
                "warm": _lists("warm", settled),
                "baselines": self._baselines,
                "graphs": self._meter.graphs,
                "empty": {side: asdict(one) for side, one in self._meter.empties.sides.items()},
                "device_memory": {
                    **self._budget.to_json(),
                    "bytes_per_second": self._machines.memory,
                    "verifying": {name: asdict(one) for name, one in self._verifying.items()},
                },
                "draw": self._drawn,
                "seconds": self.seconds,
                "machine": {
                    "cores": os.cpu_count(),
                    "load": self._host[-1]["load"],
                    "readings": self._host,
                },
            }
        )

    def _settled(self, name: str) -> BySide:
        """The samples of a config, less all empty batches."""
        empties = self._meter.empties
        return {
            side: [empties.applied(side, one) for one in self._taken[name][side]] for side in SIDES
        }

    def choose_baseline(self) -> Choice:
        """Choose the fastest mode of a PyTorch baseline; other baselines have only one."""
        if self._spec.baseline.abi != "torch":
            return Choice()
        configs = self._spec.configs
        if self._spec.choice:
            return Choice.read(Path(self._spec.choice), configs)
        return self.chooser().choose()

    def chooser(self, tunings: int = 1) -> Chooser:
        """The chooser among the modes of a PyTorch baseline."""
        judge = self._judge
        known = (self._meter, self._pilot, judge.assessor, judge.baseline)
        return Chooser(*known, self._spec.configs, tunings=tunings)

    @property
    def seconds(self) -> dict[str, float]:
        """Where the seconds went so far, by phase."""
        return self._meter.phases.rounded()

    @property
    def baseline_cache(self) -> str:
        """The directory where the baseline's compilers cache their output."""
        return self._judge.baseline.cache

    def demand_memory(self) -> None:
        """Raise MachineFault if a config does not fit the device."""
        for config in self._spec.configs:
            self._budget.demand(config.name, self._needs[config.name].least)

    def _planned(self, side: SideName, runner: Held, config: Config) -> SidePlan:
        """The plan of one side of a config, made by the first process that reaches it."""
        known = self._plans.get((side, config.name))
        if known is None:
            with self._meter.phases.of("pilot"):
                known = self._pilot.plan(side, runner, config)
            self._plans[side, config.name] = known
        return known

    def _timing(self, config: Config) -> DeviceTiming:
        slots = {side: self._plans[side, config.name].slots for side in SIDES}
        touched = plausibility.traffic(self._spec.signature, config)
        cold = min(slots.values()) * touched > COLD_FACTOR * session.cache_bytes()
        return DeviceTiming.of(
            DevicePlan(config, slots, cold),
            self._settled(config.name),
            self._machines,
            touched,
            shapes.evaluate(self._spec.flops, config.dims),
        )

    def _inexact(self, timing: DeviceTiming) -> bool:
        return timing.figures.noise > self._policy.half_width

    def _enough(self, rounds: int, seconds: float) -> str:
        """Why to stop; empty to go on. ``seconds`` includes the estimate for the next round."""
        if rounds == self._policy.max_processes:
            return "max_processes"
        return "budget" if seconds > self._policy.budget_seconds else ""


def _lists(kind: str, taken: Mapping[str, BySide]) -> dict[str, Any]:
    return {
        name: {
            side: [[asdict(sample) for sample in getattr(one, kind)] for one in sides[side]]
            for side in SIDES
        }
        for name, sides in taken.items()
    }
