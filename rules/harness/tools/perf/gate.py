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

from base.program import CandidateFault, Config, MachineFault, Reason
from base.seeds import derive
from base.spec import Spec, SpecError, read_policy
from base.verdict import FAIL, PASS, REJECTED, Verdict, canonical_json, number
from gpu import session, state
from truth.judge import Judge, JudgingPolicy, Launching

from perf import confidence, on_device, plausibility
from perf.audit import Charge, Clock
from perf.confidence import Ratio
from perf.measure import Meter, Plan, Round, Sample, Series

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
    draw: int = 0


@dataclass(frozen=True)
class Timing:
    """What was measured of one config: times per call in ns, and their ratio."""

    plan: Plan
    candidate_ns: float
    baseline_ns: float
    charged_ns: float
    ratio: Ratio

    def to_json(self) -> dict[str, Any]:
        """As a case of ``verdict.json``."""
        return {
            "config": self.plan.config.name,
            "candidate_ns": number(self.candidate_ns),
            "baseline_ns": number(self.baseline_ns),
            "charged_ns": number(self.charged_ns),
            "speedup": number(self.ratio.value),
            "low": number(self.ratio.low),
            "high": number(self.ratio.high),
            "faster": self.ratio.faster,
            "slots": self.plan.slots,
            "cold": self.plan.cold,
        }


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
        self._meter = Meter(self._judge, self._clock, self._drawn)
        self._series = {config.name: Series() for config in spec.configs}
        self._states: list[dict[str, int]] = []
        self._baselines: Mapping[str, Mapping[str, Any]] = {}
        self._budget = policy.budget_seconds or _BUDGETS[spec.candidate.abi]

    def run(self) -> tuple[Verdict, bytes]:
        """The verdict, and the raw samples as JSON. Raises TaskFault and MachineFault."""
        try:
            plans = self._plans()
            self._measure(plans)
            timings = [self._timing(plan) for plan in plans]
            self._refuse_implausible(timings)
        except CandidateFault as fault:
            return _failed(fault), self._samples()
        return _passed(timings), self._samples()

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
                [min(s.per_call_ns for s in side) for side in pilot[plan.config.name].values()],
            )
            for plan in pilots
        ]

    def _plan(self, config: Config, times: Sequence[float]) -> Plan:
        policy = self._policy
        size = plausibility.traffic(self._spec.signature, config) or 1
        cache = session.cache_bytes() if self._spec.candidate.on_device else _host_cache()
        batches = 2 * policy.processes * policy.samples * len(self._spec.configs)
        wanted = max(policy.min_batch_ms * 1e6 / min(times), COLD_FACTOR * cache / size)
        affordable = min(
            policy.max_slots,
            policy.memory_bytes / size,
            0.5e9 * self._budget / batches / max(times),
            0.5 * self._budget / batches / self._meter.seconds_per_call,
        )
        slots = max(1, math.floor(min(math.ceil(wanted), affordable)))
        return Plan(config, slots, slots * size > COLD_FACTOR * cache)

    def _measure(self, plans: Sequence[Plan]) -> None:
        policy = self._policy
        for round_ in range(1, policy.max_processes + 1):
            before = self._now()
            found = self._round(round_, plans, policy.samples)
            for name, sides in found.items():
                for side, samples in sides.items():
                    self._series[name].of(side).append(samples)
            if self._spec.candidate.on_device:
                self._states.append(state.reading())
            if round_ >= policy.processes and self._enough(plans, self._now() - before):
                return

    def _round(self, number: int, plans: Sequence[Plan], samples: int) -> Round:
        if self._spec.candidate.on_device:
            return on_device.round_of(self._meter, number, plans, samples)
        return self._meter.round(number, plans, samples)

    def _enough(self, plans: Sequence[Plan], round_seconds: float) -> bool:
        if self._now() - self._started + round_seconds > self._budget:
            return True
        return all(self._timing(plan).ratio.half_width <= self._policy.half_width for plan in plans)

    def _timing(self, plan: Plan) -> Timing:
        """The ratio of one config.

        Both sides pay for unexplained time: what the audit tolerates as noise must not pay.
        """
        series = self._series[plan.config.name]
        trusted = self._unexplained(series.baseline)
        own = Charge.settle(self._unexplained(series.candidate), trusted)
        candidate = self._charged(series.candidate, own)
        baseline = self._charged(series.baseline, Charge.settle(trusted, trusted))
        seed = int.from_bytes(derive("bootstrap", plan.config.name)[:8], "big")
        return Timing(
            plan,
            confidence.typical(candidate),
            confidence.typical(baseline),
            own.always_ns / plan.slots,
            confidence.ratio(candidate, baseline, seed),
        )

    def _unexplained(self, processes: Sequence[Sequence[Sample]]) -> list[float]:
        return [self._clock.unexplained_ns(sample) for process in processes for sample in process]

    def _charged(self, processes: Sequence[Sequence[Sample]], charge: Charge) -> list[list[float]]:
        """The times per call that count."""
        return [
            [s.per_call_ns + charge.of(self._clock.unexplained_ns(s)) / s.slots for s in process]
            for process in processes
        ]

    def _refuse_implausible(self, timings: Sequence[Timing]) -> None:
        spec = self._spec
        told = on_device.ceilings() if spec.candidate.on_device else (0.0, 0.0)
        model = plausibility.device(spec.platform, told)
        for timing in timings:
            config = timing.plan.config
            floor = plausibility.floor_ns(spec.signature, spec.flops, config, model)
            if timing.baseline_ns < floor:
                raise MachineFault(
                    f"the baseline takes {timing.baseline_ns:.0f} ns for {config.name}, less than "
                    f"the {floor:.0f} ns that this device is thought to need"
                )
            if timing.candidate_ns < floor:
                raise CandidateFault(
                    Reason.IMPLAUSIBLE,
                    f"{timing.candidate_ns:.0f} ns a call for {config.name}: no machine of this "
                    f"kind does the work in less than {floor:.0f} ns",
                )

    def _samples(self) -> bytes:
        configs = {
            name: {
                "candidate": [[asdict(sample) for sample in process] for process in s.candidate],
                "baseline": [[asdict(sample) for sample in process] for process in s.baseline],
            }
            for name, s in self._series.items()
        }
        return canonical_json(
            {
                "schema": 1,
                "configs": configs,
                "baselines": self._baselines,
                "graphs": self._meter.graphs or {},
                "device": self._states,
                "draw": self._drawn,
                "empty_ns": list(self._clock.empty_ns),
                "machine": {"cores": os.cpu_count(), "load": os.getloadavg()},
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


def _passed(timings: Sequence[Timing]) -> Verdict:
    ratios = [timing.ratio.value for timing in timings]
    mean, geomean = statistics.fmean(ratios), statistics.geometric_mean(ratios)
    faster = sum(timing.ratio.faster for timing in timings)
    extra: Mapping[str, Any] = {
        "configs": [timing.plan.config.name for timing in timings],
        "mean_speedup": number(mean),
        "geomean_speedup": number(geomean),
    }
    summary = f"{mean:.2f}x, surely faster on {faster} of {len(timings)} configs"
    lines = [
        f"{t.plan.config.name}: {t.ratio.value:.3f}x [{t.ratio.low:.3f}, {t.ratio.high:.3f}]"
        for t in timings
    ]
    cases = [timing.to_json() for timing in timings]
    return Verdict(GATE, PASS, "", summary, "\n".join(lines), cases, extra)


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
