"""The correctness gate: seven stages, each reported by name with its worst case.

Sampled outputs have an eighth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from base import scalar_ranges, shapes
from base.program import CandidateFault, Config, MachineFault
from base.sampler import Ground
from base.seeds import Stream
from base.spec import Spec, SpecError, config_name, read_policy
from gpu import session
from terms.correctness import CorrectnessPolicy
from terms.reasons import Reason
from terms.verdict import PASS, Verdict
from truth.judge import Case, Judge
from truth.oracle import TaskFault
from truth.side import Launching
from truth.stage import Group, StageReport, ended, run_cases, skipped

from correctness import bypass, determinism, edges, extents, samples

_REDUCED = {"hip": 16384, "torch": 16384, "python": 1024, "call": 16384}
_REDUCED_ELSEWHERE = 1 << 20


@dataclass(frozen=True)
class _Gate:
    """One judging by this gate, with the sources of the stages' cases."""

    spec: Spec
    policy: CorrectnessPolicy
    judge: Judge
    ground: Ground = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ground", Ground.of(self.spec))

    def smallest(self) -> list[Config]:
        """For each dtype of the space, the visible config that is cheapest once reduced.

        One without dims of 1 comes first, such as one sequence: rows differ, or race, among others.
        """

        def narrow_first(config: Config) -> tuple[int, list[int]]:
            sizes = sorted(config.dims.values())
            return sizes.count(1), sizes

        found: dict[str, Config] = {}
        for config in sorted(self.spec.configs, key=narrow_first):
            small = edges.reduced(config, self.ground, self._reduced_elements())
            found.setdefault(config.dtype, small)
        first = next(iter(found.values()))
        return [found.get(d) or _retyped(first, d) for d in self.spec.space.dtypes]

    def smoke(self) -> StageReport:
        """The first visible config."""
        return run_cases(self.judge, "smoke", [[Case("smoke", self.spec.configs[0], shown=True)]])

    def sweep(self) -> StageReport:
        """Every visible config, and one config for each dtype that none of them has."""
        groups = [[Case("sweep", config, shown=True)] for config in self._swept()]
        return run_cases(self.judge, "sweep", groups)

    def distributions(self) -> StageReport:
        """Every distribution of values, at one small config of each dtype."""
        groups = [
            [Case("distributions", config, name) for name in self.policy.distributions]
            for config in self.smallest()
        ]
        return run_cases(self.judge, "distributions", groups, excused=True)

    def determinism(self) -> StageReport:
        """Equal calls give equal results."""
        return determinism.stage(
            self.judge,
            self.smallest(),
            self.policy.repeats,
            bitwise=self.policy.deterministic,
        )

    def samples(self) -> StageReport:
        """Many draws, under many seeds."""
        abi = self.spec.candidate.abi if self.spec.platform == "cpu" else ""
        return samples.stage(self.judge, self._drawing(abi), abi)

    def _drawing(self, abi: str) -> list[Config]:
        """For each dtype of the space, the visible config with the most draws once reduced.

        Then the same with other scalars, if the task declares ranges: a temperature that is built
        in shows in many draws alone.
        """
        elements = self._reduced_elements() if abi else samples.ELEMENTS_ELSEWHERE
        found: dict[str, Config] = {}
        for config in self.spec.configs:
            small = edges.reduced(config, self.ground, elements)
            known = found.setdefault(config.dtype, small)
            if self._draws(small) > self._draws(known):
                found[config.dtype] = small
        first = max(found.values(), key=self._draws)
        chosen = [found.get(d) or _retyped(first, d) for d in self.spec.space.dtypes]
        return [*chosen, *map(self._rescaled, chosen if self.spec.space.scalars else ())]

    def _rescaled(self, config: Config) -> Config:
        """The config with scalars from their ranges, the same for all candidates of a task."""
        stream = Stream("samples", self.spec.salt, self.ground.identity(), config.name)
        scalars = scalar_ranges.drawn(self.spec.space.scalars, stream)
        name = config_name(config.dtype, config.dims, config.absent, scalars)
        return replace(config, name=name, scalars={**config.scalars, **scalars})

    def _draws(self, config: Config) -> int:
        """How many values a call draws, in the sampled output that has fewest."""
        results = self.spec.signature.results
        drawn = [a for a in results if a.name in self.judge.assessor.sampled]
        return min(math.prod(shapes.shape(argument, config.dims)) for argument in drawn)

    def edges(self) -> StageReport:
        """Sizes at which kernels break."""
        configs = edges.edges(self.ground, self.spec.salt, self.policy.edges)
        groups: Sequence[Group] = [[Case("edges", config)] for config in configs]
        return run_cases(self.judge, "edges", groups, excused=True)

    def extents(self) -> StageReport:
        """Each dim at its longest; if a device has the memory, more elements than 32 bits count."""
        on_cpu = self.spec.platform == "cpu"
        found = extents.longest(self.ground, self.judge, on_cpu=on_cpu)
        groups: Sequence[Group] = [[Case(extents.STAGE, c)] for c in found.tried.values()]
        done = run_cases(self.judge, extents.STAGE, groups, excused=True)
        slow = tuple(config.name for config in found.left_out.values())
        done = replace(done, not_applicable=(*done.not_applicable, *slow), timely=on_cpu)
        if on_cpu or done.outcome != PASS:
            return done
        return self._beyond_32_bits(done)

    def _beyond_32_bits(self, done: StageReport) -> StageReport:
        """``done``, with one more case if the device has room for it.

        A size that the judge itself cannot hold or compute is left out.
        """
        config = extents.beyond_32_bits(self.ground, session.memory_bytes())
        if config is None:
            return done
        self.judge.thin_out()
        wide = self._tried(done.stage, config)
        self.judge.give_back_memory()
        if wide is None or wide.reason == Reason.OUT_OF_MEMORY.value:  # scratch has its own limits
            wide = StageReport(done.stage, PASS, not_applicable=(config.name,))
        return replace(
            wide,
            configs=(*done.configs, *wide.configs),
            not_applicable=(*done.not_applicable, *wide.not_applicable),
            worst=wide.worst or done.worst,
        )

    def _tried(self, stage: str, config: Config) -> StageReport | None:
        """The report on one config; None if it is too large for memory or for PyTorch."""
        try:
            return run_cases(self.judge, stage, [[Case(stage, config)]], excused=True)
        except (RuntimeError, MachineFault, TaskFault):
            self.judge.kill()
            return None

    def kernels(self) -> StageReport:
        """The results come from kernels."""
        first = self.spec.configs[0]
        candidate = self.spec.candidate
        if candidate.abi == "call" or (candidate.on_device and not candidate.launch_filter):
            # It may call libraries, or its launches cannot be left out.
            return StageReport(bypass.STAGE, PASS, not_applicable=(first.name,))
        return bypass.stage(self.judge, self._swept())

    def stages(self) -> Mapping[str, Callable[[], StageReport]]:
        """The stages by name, in their order."""
        return {
            "smoke": self.smoke,
            "sweep": self.sweep,
            "distributions": self.distributions,
            "determinism": self.determinism,
            **({"samples": self.samples} if self.judge.assessor.sampled else {}),
            "edges": self.edges,
            "extents": self.extents,
            "kernels": self.kernels,
        }

    def _swept(self) -> list[Config]:
        configs = list(self.spec.configs)
        shown = {config.dtype for config in configs}
        return configs + [_retyped(configs[0], d) for d in self.spec.space.dtypes if d not in shown]

    def _reduced_elements(self) -> int:
        on_cpu = self.spec.platform == "cpu"
        usual = _REDUCED[self.spec.candidate.abi] if on_cpu else _REDUCED_ELSEWHERE
        return self.policy.reduced_elements or usual


def run(spec: Spec, launcher: Launching) -> Verdict:
    """Judge a candidate's results. Stages after a failed one are skipped.

    Raises SpecError, TaskFault and MachineFault, if nothing was judged.
    """
    policy = read_policy(CorrectnessPolicy, spec.policy)
    if policy.repeats < 2 or not policy.distributions:
        raise SpecError("a policy needs at least 2 repeats and a distribution")
    judge = Judge.assemble(spec, launcher, policy, timed=False)
    reports: list[StageReport] = []
    gate = _Gate(spec, policy, judge)
    try:
        judge.require_repeatable(gate.smallest()[0])
        for name, stage in gate.stages().items():
            failed = reports and reports[-1].outcome != PASS
            reports.append(skipped(name) if failed else stage())
        judge.finish()
    except CandidateFault as fault:
        reports.append(ended(fault))
    finally:
        judge.kill()
    return _verdict(reports)


def _verdict(reports: Sequence[StageReport]) -> Verdict:
    cases = [report.to_json() for report in reports]
    failed = next((report for report in reports if report.outcome != PASS), None)
    if failed is None:
        tried = sum(len(report.configs) for report in reports)
        inapplicable = sum(len(report.not_applicable) for report in reports)
        note = f", {inapplicable} not applicable" if inapplicable else ""
        summary = f"{tried} cases in {len(reports)} stages{note}"
        return Verdict("correctness", PASS, "", summary, "", cases)
    first_line = failed.detail.partition("\n")[0]
    return Verdict(
        "correctness",
        failed.outcome,
        failed.reason,
        f"{failed.stage}: {first_line}",
        failed.detail,
        cases,
    )


def _retyped(config: Config, dtype: str) -> Config:
    return Config(config_name(dtype, config.dims), config.dims, dtype, config.scalars)
