"""The perf gate: how much faster than the baseline, how sure, and whether to believe it."""

from __future__ import annotations

import math
import os
import secrets
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from base import shapes
from base.program import CandidateFault, Config, MachineFault, Reason
from base.spec import Spec, SpecError, read_policy
from base.verdict import FAIL, PASS, REJECTED, Verdict, canonical_json, number
from gpu import session, state
from truth.judge import Judge, JudgingPolicy, Launching

from perf import machine, on_device, plausibility
from perf.audit import Clock
from perf.measure import SIDES, Meter, Plan, Round, Series, SideName
from perf.timing import Figures, Timing

GATE = "perf"
COLD_FACTOR = 3
_BUDGETS = {"hip": 4.0, "torch": 4.0, "python": 12.0}
_FALLBACK_CACHE = 32 << 20


@dataclass(frozen=True)
class PerfPolicy(JudgingPolicy):
    """What a task may change about this gate.

    Attributes:
        processes: fresh processes a side, at least; more follow while the budget lasts and
            some interval is wider than ``half_width``.
        max_processes: at most.
        samples: timed batches in each process.
        half_width: half the confidence interval of the log ratio that is precise enough.
        budget_seconds: for all configs together; 0 for the default of the kind of program.
            The least number of processes and samples is taken whatever it costs.
        min_batch_ms: how long a batch should be at least.
        max_slots: calls of one batch, at most.
        memory_bytes: of the tensors of one batch, at most.
        clock_ms, clock_share: unexplained time that the audit allows, whichever is more.
        readings: of each batch, at most, until the clocks agree without an excuse: beside short
            batches the machine's noise is large, and is charged to either side.
        warm: whether calls on inputs that are in the caches are timed, too. Nothing is decided by
            those times.
        draw: the randomness of the timed inputs, as ``samples.json`` of an earlier judging has
            it; 0 for new.
    """

    processes: int = 3
    max_processes: int = 7
    samples: int = 2
    half_width: float = 0.05
    budget_seconds: float = 0.0
    min_batch_ms: float = 10.0
    max_slots: int = 64
    memory_bytes: int = 64 << 20
    clock_ms: float = 2.0
    clock_share: float = 0.1
    readings: int = 1
    warm: bool = True
    draw: int = 0


@dataclass(frozen=True)
class Stop:
    """Why no more was measured.

    Attributes:
        reason: ``half_width``, all intervals being narrow enough; ``budget``, the time being up;
            or ``max_processes``.
        half_width: of the widest interval.
        wanted: the policy's half width.
        processes: fresh ones that were timed on each side.
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
        self._meter = Meter(
            self._judge, self._clock, self._drawn, warm=policy.warm, readings=policy.readings
        )
        self._series = {config.name: Series() for config in spec.configs}
        self._states: list[dict[str, int]] = []
        self._host = [machine.reading()]
        self._baselines: Mapping[str, Mapping[str, Any]] = {}
        self._budget = policy.budget_seconds or _BUDGETS[spec.candidate.abi]

    def run(self) -> tuple[Verdict, bytes]:
        """The verdict, and the raw samples as JSON. Raises TaskFault and MachineFault."""
        try:
            plans = self._plans()
            stop = self._measure(plans)
            timings = [self._timing(plan) for plan in plans]
            self._refuse_implausible(timings)
        except CandidateFault as fault:
            return _failed(fault), self._samples()
        return _passed(timings, stop), self._samples()

    def _plans(self) -> list[Plan]:
        """How to time each config, from a pilot round that counts for nothing else."""
        slots = 1
        if self._spec.candidate.on_device:
            self._meter.graphs = {}
            self._baselines = on_device.choose_baselines(self._meter, self._judge, self._spec)
            slots = on_device.PILOT_SLOTS
        pilots = [Plan(config, slots) for config in self._spec.configs]
        pilot = self._round(0, pilots, 2)
        return [
            self._plan(
                plan.config,
                {
                    side: min(sample.per_call_ns for sample in samples)
                    for side, samples in pilot[plan.config.name].items()
                },
            )
            for plan in pilots
        ]

    def _plan(self, config: Config, times: Mapping[SideName, float]) -> Plan:
        policy = self._policy
        size = plausibility.traffic(self._spec.signature, config) or 1
        cache = session.cache_bytes() if self._spec.candidate.on_device else _host_cache()
        batches = 2 * policy.processes * policy.samples * len(self._spec.configs)
        affordable = min(
            policy.max_slots,
            policy.memory_bytes / size,
            0.5 * self._budget / batches / self._meter.seconds_per_call,
        )

        def slots_of(quick: float, slow: float) -> int:
            wanted = max(policy.min_batch_ms * 1e6 / quick, COLD_FACTOR * cache / size)
            most = min(affordable, 0.5e9 * self._budget / batches / slow)
            return max(1, math.floor(min(math.ceil(wanted), most)))

        if self._spec.candidate.on_device:
            slots = slots_of(min(times.values()), max(times.values()))
            return Plan(config, slots, slots * size > COLD_FACTOR * cache)
        # Where others have the processors, too, they should have them as often in either batch.
        own, theirs = (slots_of(times[side], times[side]) for side in SIDES)
        return Plan(config, own, min(own, theirs) * size > COLD_FACTOR * cache, theirs)

    def _measure(self, plans: Sequence[Plan]) -> Stop:
        policy = self._policy
        round_ = 0
        while True:
            round_ += 1
            before = self._now()
            found = self._round(round_, plans, policy.samples)
            for name, sides in found.items():
                for side, samples in sides.items():
                    self._series[name].of(side).append(samples)
            self._host.append(machine.reading())
            if self._spec.candidate.on_device:
                self._states.append(state.reading())
            if round_ >= policy.processes and (
                stop := self._stop(plans, round_, self._now() - before)
            ):
                return stop

    def _round(self, number: int, plans: Sequence[Plan], samples: int) -> Round:
        if self._spec.candidate.on_device:
            return on_device.round_of(self._meter, number, plans, samples, self._fit)
        return self._meter.round(number, plans, samples)

    def _fit(self, plans: Sequence[Plan]) -> bool:
        """Whether one process may hold the tensors of all these."""
        signature = self._spec.signature
        sizes = (plan.most_slots * plausibility.traffic(signature, plan.config) for plan in plans)
        return sum(sizes) <= self._policy.memory_bytes

    def _stop(self, plans: Sequence[Plan], rounds: int, round_seconds: float) -> Stop | None:
        """Why to measure no more; None where another round is worth it."""
        policy = self._policy
        widest = max(self._timing(plan).ratio.half_width for plan in plans)
        if widest <= policy.half_width:
            return Stop("half_width", widest, policy.half_width, rounds)
        if rounds == policy.max_processes:
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

    def _refuse_implausible(self, timings: Sequence[Timing]) -> None:
        spec = self._spec
        told = on_device.ceilings() if spec.candidate.on_device else (0.0, 0.0)
        model = plausibility.device(spec.platform, told)
        for timing in timings:
            config, figures = timing.plan.config, timing.figures
            floor = plausibility.floor_ns(spec.signature, spec.flops, config, model)
            if figures.baseline_ns < floor:
                raise MachineFault(
                    f"the baseline takes {figures.baseline_ns:.0f} ns for {config.name}, less than "
                    f"the {floor:.0f} ns that this device is thought to need"
                )
            if figures.candidate_ns < floor:
                raise CandidateFault(
                    Reason.IMPLAUSIBLE,
                    f"{figures.candidate_ns:.0f} ns a call for {config.name}: no machine of this "
                    f"kind does the work in less than {floor:.0f} ns",
                )

    def _samples(self) -> bytes:
        return canonical_json(
            {
                "schema": 1,
                "configs": {name: asdict(series) for name, series in self._series.items()},
                "warm": {name: asdict(series) for name, series in self._meter.warm.items()},
                "baselines": self._baselines,
                "graphs": self._meter.graphs or {},
                "device": self._states,
                "draw": self._drawn,
                "empty_ns": list(self._clock.empty_ns),
                "machine": {
                    "cores": os.cpu_count(),
                    "load": self._host[-1]["load"],
                    "readings": self._host,
                },
            }
        )


def run(spec: Spec, launcher: Launching) -> tuple[Verdict, bytes]:
    """Time both sides: the verdict, and ``samples.json``.

    Raises SpecError, TaskFault and MachineFault, where nothing was judged.
    """
    settled = on_device.settled(spec.policy) if spec.candidate.on_device else spec.policy
    policy = read_policy(PerfPolicy, settled)
    if policy.processes < 3 or policy.samples < 2 or policy.max_slots < 1:
        raise SpecError("a policy needs at least 3 processes, 2 samples and 1 slot")
    if policy.max_processes < policy.processes:
        raise SpecError("max_processes is less than processes")
    return PerfGate(spec, launcher, policy).run()


def _passed(timings: Sequence[Timing], stop: Stop) -> Verdict:
    ratios = [timing.ratio.value for timing in timings]
    mean, geomean = statistics.fmean(ratios), statistics.geometric_mean(ratios)
    faster = sum(timing.ratio.faster for timing in timings)
    extra: Mapping[str, Any] = {
        "configs": [timing.plan.config.name for timing in timings],
        "mean_speedup": number(mean),
        "geomean_speedup": number(geomean),
        "stop": {**asdict(stop), "half_width": number(stop.half_width)},
    }
    summary = f"{mean:.2f}x, surely faster on {faster} of {len(timings)} configs"
    lines = [
        f"{t.plan.config.name}: {t.ratio.value:.3f}x [{t.ratio.low:.3f}, {t.ratio.high:.3f}]"
        for t in timings
    ]
    cases = [timing.to_json() for timing in timings]
    return Verdict(GATE, PASS, "", summary, "\n".join([*lines, str(stop)]), cases, extra)


def _failed(fault: CandidateFault) -> Verdict:
    outcome = REJECTED if fault.rejected else FAIL
    summary = fault.detail.partition("\n")[0] or fault.reason.value
    return Verdict(GATE, outcome, fault.reason.value, summary, fault.detail)


def _host_cache() -> int:
    """Bytes of this machine's last-level cache, or what is usual where it does not say."""
    sizes = [
        os.sysconf(name)
        for name in ("SC_LEVEL3_CACHE_SIZE", "SC_LEVEL2_CACHE_SIZE")
        if name in os.sysconf_names
    ]
    return max([size for size in sizes if size > 0], default=_FALLBACK_CACHE)
