"""The perf gate: the speedup over the baseline, its uncertainty, and its plausibility."""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from base import shapes
from base.program import CandidateFault, Config, MachineFault
from base.spec import Spec, SpecError, read_policy
from gpu import session
from terms.perf import ON_DEVICE, PerfPolicy
from terms.reasons import Reason
from terms.speedup import Speedup
from terms.verdict import FAIL, PASS, REJECTED, Verdict, canonical_json, number
from truth.judge import Judge
from truth.side import Launching

from perf import machine, plausibility
from perf.asides import Asides
from perf.audit import Clock
from perf.choice import Choice
from perf.device_figures import DeviceTiming
from perf.device_gate import DeviceGate
from perf.measure import Meter
from perf.plan import SIDES, Plan, Series
from perf.planning import Bounds, Planner
from perf.timing import Figures, Timing

GATE = "perf"
SAMPLES = "samples.json"
_BUDGETS = {"hip": 4.0, "torch": 4.0, "python": 6.0, "call": 4.0}
_FALLBACK_CACHE = 32 << 20
_ALONE_NS = 1e6
"""Calls of PyTorch on the CPU from this long on are timed one by one.

A batch has the inputs of all its calls, and one computation may solve them together. Their launches
cannot be left out, which would show it. In shorter calls one by one, noise would outweigh them.
"""


@dataclass(frozen=True)
class Stop:
    """Why measuring stopped.

    Attributes:
        reason: ``half_width`` if all intervals are narrow enough; ``budget`` if the time is up;
            or ``max_processes``.
        half_width: of the widest interval, counting only noise.
        wanted: the policy's half width.
        processes: fresh processes that were timed on each side.
    """

    reason: str
    half_width: float
    wanted: float
    processes: int

    def __str__(self) -> str:
        return (
            f"{self.processes} processes a side, stopped by {self.reason}: the widest interval "
            f"has a half-width of {self.half_width:.3f} in the log ratio, {self.wanted:g} wanted"
        )


class PerfGate:
    """One judging of this gate."""

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
        self._started = now()
        self._clock = Clock(policy.clock_ms * 1e6, policy.clock_share)
        self._judge = Judge.assemble(spec, launcher, policy)
        self._drawn = policy.draw or secrets.randbits(48)
        self._choice = Choice.of_host(spec)
        self._meter = Meter(
            self._judge, self._clock, self._drawn, warm=policy.warm, readings=policy.readings
        )
        self._series = {config.name: Series() for config in spec.configs}
        self._host = [machine.reading()]
        self._budget = policy.budget_seconds or _BUDGETS[spec.candidate.abi]
        self._planner = Planner(self._clock, self._bounds, lambda: self._meter.seconds_per_call)

    def run(self) -> Verdict:
        """The verdict, with the raw samples in ``samples.json``.

        Raises TaskFault and MachineFault.
        """
        try:
            plans = self._plans()
            stop = self._measure(plans)
            self._refuse_lies(plans)
            timings = [self._timing(plan) for plan in plans]
            _refuse_implausible(self._spec, timings)
        except CandidateFault as fault:
            return _failed(fault, self._samples())
        return _passed(timings, stop, self._samples())

    def _plans(self) -> list[Plan]:
        """The plan of each config, from a pilot round that is not counted."""
        pilot = self._meter.round(0, [Plan(config, 1) for config in self._spec.configs], 2)
        self._meter.asides = Asides(self._judge, self._spec, self._policy, self._drawn)
        self._meter.asides.prepare()
        return [self._planner.first(config, pilot[config.name]) for config in self._spec.configs]

    def _bounds(self, config: Config) -> Bounds:
        policy = self._policy
        # Each process also has one untimed batch; half of the time is the judge's.
        batches = 2 * policy.processes * (policy.samples + 1) * len(self._spec.configs)
        return Bounds(
            min_batch_ns=policy.min_batch_ms * 1e6,
            max_slots=policy.max_slots,
            call_bytes=plausibility.traffic(self._spec.signature, config) or 1,
            cache_bytes=_host_cache(),
            memory_bytes=policy.memory_bytes,
            batch_seconds=0.5 * self._budget / batches,
            alone_ns=_ALONE_NS if self._spec.candidate.abi == "call" else math.inf,
        )

    def _measure(self, plans: list[Plan]) -> Stop:
        """Time all configs; ``plans`` get more calls if a batch turns out to be too short."""
        policy = self._policy
        round_ = 0
        while True:
            round_ += 1
            before = self._now()
            found = self._meter.round(round_, plans, policy.samples)
            for index, plan in enumerate(plans):
                name = plan.config.name
                if longer := self._planner.again(plan, found[name]):
                    plans[index] = longer
                    self._series[name] = Series()
                    self._meter.warm.pop(name, None)
                    continue
                for side, samples in found[name].items():
                    self._series[name].of(side).append(samples)
            self._host.append(machine.reading())
            least = min(len(series.candidate) for series in self._series.values())
            if least >= policy.processes and (
                stop := self._stop(plans, least, self._now() - before)
            ):
                return stop

    def _stop(self, plans: Sequence[Plan], rounds: int, round_seconds: float) -> Stop | None:
        """Why to stop; None if another round is worthwhile."""
        policy = self._policy
        widest = max(self._timing(plan).figures.noise for plan in plans)
        if widest <= policy.half_width:
            return Stop("half_width", widest, policy.half_width, rounds)
        if rounds >= policy.max_processes:
            return Stop("max_processes", widest, policy.half_width, rounds)
        if self._now() - self._started + round_seconds > self._budget:
            return Stop("budget", widest, policy.half_width, rounds)
        return None

    def _timing(self, plan: Plan) -> Timing:
        name, config = plan.config.name, plan.config
        warm = self._meter.warm.get(name) if self._policy.warm else None
        return Timing(
            plan,
            Figures.of(plan, self._series[name], self._clock),
            moved_bytes=plausibility.traffic(self._spec.signature, config),
            flops=shapes.evaluate(self._spec.flops, config.dims),
            warm=Figures.of(plan, warm, self._clock) if warm else None,
        )

    def _refuse_lies(self, plans: Sequence[Plan]) -> None:
        """Raise CandidateFault if reports and the judge's clock disagree in most batches."""
        for name in (plan.config.name for plan in plans):
            own, trusted = (
                list(chain.from_iterable(self._series[name].of(side))) for side in SIDES
            )
            if said := self._clock.complaint(own, trusted):
                raise CandidateFault(Reason.CLOCK_MISMATCH, f"{said}\n  in {name}")

    def _samples(self) -> bytes:
        return canonical_json(
            {
                "schema": 1,
                "baselines": self._choice.evidence,
                "configs": {name: asdict(series) for name, series in self._series.items()},
                "warm": {name: asdict(series) for name, series in self._meter.warm.items()},
                "draw": self._drawn,
                "empty_ns": list(self._clock.empty_ns),
                "machine": {
                    "cores": os.cpu_count(),
                    "load": self._host[-1]["load"],
                    "readings": self._host,
                },
            }
        )


def run(spec: Spec, launcher: Launching) -> Verdict:
    """Time both sides and return the verdict, with ``samples.json``.

    Raises SpecError, TaskFault and MachineFault; then nothing was judged.
    """
    policy = policy_of(spec)
    if spec.candidate.on_device:
        return _run_on_device(spec, launcher, policy)
    return PerfGate(spec, launcher, policy).run()


def policy_of(spec: Spec) -> PerfPolicy:
    """The policy of a spec. Raises SpecError for an invalid one."""
    on_device = spec.candidate.on_device
    policy = read_policy(PerfPolicy, {**(ON_DEVICE if on_device else {}), **spec.policy})
    if policy.processes < 3 or policy.samples < 2 or policy.max_slots < 1:
        raise SpecError("a policy needs at least 3 processes, 2 samples and 1 slot")
    if policy.max_processes < policy.processes:
        raise SpecError("max_processes is less than processes")
    return policy


def _run_on_device(spec: Spec, launcher: Launching, policy: PerfPolicy) -> Verdict:
    gate = DeviceGate(spec, launcher, policy)
    try:
        timings, why, rounds = gate.measure()
        _refuse_implausible(spec, timings)
    except CandidateFault as fault:
        return _failed(fault, gate.samples())
    widest = max(timing.figures.noise for timing in timings)
    return _passed(timings, Stop(why, widest, policy.half_width, rounds), gate.samples())


def _refuse_implausible(spec: Spec, timings: Sequence[Timing | DeviceTiming]) -> None:
    """Raise CandidateFault, or MachineFault for the baseline, if a time is impossibly short."""
    told = session.ceilings() if spec.candidate.on_device else (0.0, 0.0)
    model = plausibility.device(spec.platform, told)
    for timing in timings:
        config, figures = timing.plan.config, timing.figures
        floor = plausibility.floor_ns(spec.signature, spec.flops, config, model)
        if figures.baseline_ns < floor:
            raise MachineFault(
                f"the baseline takes {figures.baseline_ns:.0f} ns for {config.name}, but the "
                f"model of this device allows no less than {floor:.0f} ns"
            )
        if figures.candidate_ns < floor:
            raise CandidateFault(
                Reason.IMPLAUSIBLE,
                f"{figures.candidate_ns:.0f} ns a call for {config.name}: no machine of this "
                f"kind does the work in less than {floor:.0f} ns",
            )


def _passed(timings: Sequence[Timing | DeviceTiming], stop: Stop, samples: bytes) -> Verdict:
    speedups = [timing.ratio.speedup for timing in timings]
    mean = Speedup.mean(speedups)
    faster = sum(timing.ratio.faster for timing in timings)
    extra: Mapping[str, Any] = {
        "configs": [timing.plan.config.name for timing in timings],
        "mean_speedup": number(mean.figure),
        "speedup_low": number(mean.low),
        "speedup_high": number(mean.high),
        "stop": {**asdict(stop), "half_width": number(stop.half_width)},
    }
    summary = f"{mean}, significantly faster on {faster} of {len(timings)} configs"
    lines = [
        f"{timing.plan.config.name}: {speedup} [{speedup.low:.3g}, {speedup.high:.3g}]"
        for timing, speedup in zip(timings, speedups, strict=True)
    ]
    cases = [timing.to_json() for timing in timings]
    detail = "\n".join([*lines, str(stop)])
    return Verdict(GATE, PASS, "", summary, detail, cases, extra, {SAMPLES: samples})


def _failed(fault: CandidateFault, samples: bytes) -> Verdict:
    outcome = REJECTED if fault.rejected else FAIL
    summary = fault.detail.partition("\n")[0] or fault.reason.value
    files = {SAMPLES: samples}
    return Verdict(GATE, outcome, fault.reason.value, summary, fault.detail, files=files)


def _host_cache() -> int:
    """Bytes of this machine's last-level cache; a typical size if it is unknown."""
    sizes = [
        os.sysconf(name)
        for name in ("SC_LEVEL3_CACHE_SIZE", "SC_LEVEL2_CACHE_SIZE")
        if name in os.sysconf_names
    ]
    return max([size for size in sizes if size > 0], default=_FALLBACK_CACHE)
