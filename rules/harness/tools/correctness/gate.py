"""The correctness gate: six stages, each reported by name with its worst case.

Outputs that are drawn have a seventh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from base.program import CandidateFault, Config
from base.sampler import Ground
from base.spec import Spec, SpecError, config_name, read_policy
from base.verdict import PASS, Verdict
from truth import distributions
from truth.judge import Case, Judge, JudgingPolicy, Launching

from correctness import bypass, determinism, edges, samples
from correctness.stage import Group, StageReport, ended, run_cases, skipped

_REDUCED = {"hip": 16384, "torch": 16384, "python": 1024}
_REDUCED_ELSEWHERE = 1 << 20


@dataclass(frozen=True)
class CorrectnessPolicy(JudgingPolicy):
    """What a task may change about this gate.

    Attributes:
        distributions: which values to try; names that are not ours are the task's own.
        deterministic: whether equal calls must give equal bits. Where not, as with atomic
            additions, each repeat must still be within tolerance.
        repeats: how many equal calls are compared.
        edges: how many edge configs are tried.
        reduced_elements: cap on tensors where values matter and sizes do not; 0 for the
            platform's own.
    """

    distributions: tuple[str, ...] = distributions.NAMES
    deterministic: bool = True
    repeats: int = 3
    edges: int = 6
    reduced_elements: int = 0


@dataclass(frozen=True)
class _Gate:
    """One judging of this gate: what the stages draw their cases from."""

    spec: Spec
    policy: CorrectnessPolicy
    judge: Judge
    ground: Ground = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ground", Ground.of(self.spec))

    def smallest(self) -> list[Config]:
        """For each dtype of the space, the visible config that is cheapest once reduced."""
        found: dict[str, Config] = {}
        for config in sorted(self.spec.configs, key=lambda c: sorted(c.dims.values())):
            small = edges.reduced(config, self.ground, self._reduced_elements())
            found.setdefault(config.dtype, small)
        first = next(iter(found.values()))
        return [found.get(d) or _retyped(first, d) for d in self.spec.space.dtypes]

    def smoke(self) -> StageReport:
        """The first visible config."""
        return run_cases(self.judge, "smoke", [[Case("smoke", self.spec.configs[0])]])

    def sweep(self) -> StageReport:
        """Every visible config, and every dtype that none of them has."""
        configs = list(self.spec.configs)
        shown = {config.dtype for config in configs}
        configs += [_retyped(configs[0], d) for d in self.spec.space.dtypes if d not in shown]
        return run_cases(self.judge, "sweep", [[Case("sweep", config)] for config in configs])

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
        return samples.stage(self.judge, self.smallest(), abi)

    def edges(self) -> StageReport:
        """Sizes at which kernels break."""
        configs = edges.edges(self.ground, self.spec.salt, self.policy.edges)
        groups: Sequence[Group] = [[Case("edges", config)] for config in configs]
        return run_cases(self.judge, "edges", groups, excused=True)

    def kernels(self) -> StageReport:
        """Kernels do the work."""
        first = self.spec.configs[0]
        if self.spec.candidate.on_device and self.spec.candidate.abi == "hip":
            # A library's launches cannot be told from its host's work, which on a device has
            # no way to the outputs but a copy.
            return StageReport(bypass.STAGE, PASS, not_applicable=(first.name,))
        return bypass.stage(self.judge, first)

    def stages(self) -> Mapping[str, Callable[[], StageReport]]:
        """The stages by name, in their order."""
        return {
            "smoke": self.smoke,
            "sweep": self.sweep,
            "distributions": self.distributions,
            "determinism": self.determinism,
            **({"samples": self.samples} if self.judge.assessor.sampled else {}),
            "edges": self.edges,
            "kernels": self.kernels,
        }

    def _reduced_elements(self) -> int:
        on_cpu = self.spec.platform == "cpu"
        usual = _REDUCED[self.spec.candidate.abi] if on_cpu else _REDUCED_ELSEWHERE
        return self.policy.reduced_elements or usual


def run(spec: Spec, launcher: Launching) -> Verdict:
    """Judge a candidate's results. Stages after one that fails are skipped.

    Raises SpecError, TaskFault and MachineFault, where nothing was judged.
    """
    policy = read_policy(CorrectnessPolicy, spec.policy)
    if policy.repeats < 2 or not policy.distributions:
        raise SpecError("a policy needs at least 2 repeats and a distribution")
    judge = Judge.assemble(spec, launcher, policy)
    reports: list[StageReport] = []
    try:
        for name, stage in _Gate(spec, policy, judge).stages().items():
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
