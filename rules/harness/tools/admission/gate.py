"""The admission gate: whether a task is fit for a benchmark.

It judges the task, not a candidate. The checks of the declaration and the oracle come first and are
cheap; then the task's own kernels run on the visible configs, and fabricated wrong outputs are
compared; last, the kernels run on many drawn configs. A stage with a failure stops the later ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from base import shapes
from base.program import CandidateFault
from base.spec import Spec, SpecError, largest_tensor, read_policy
from terms.policy import JudgingPolicy
from terms.verdict import PASS, REJECTED, SKIPPED, Verdict
from truth import repeatable
from truth.judge import Judge
from truth.oracle import TaskFault
from truth.side import Launching, Side

from admission import exactness, filters, own_kernels, wrong_outputs
from admission.subject import Subject

BRIEF_LETTERS = 60
BRIEF_WORDS = 10


@dataclass(frozen=True)
class AdmissionPolicy(JudgingPolicy):
    """The policy of admission: the correctness gate's, and facts about the task.

    Attributes:
        deterministic: whether the task demands equal bits from equal calls.
        samples: the number of drawn configs.
        expert: whether the candidate is the task's expert, tried besides the baseline.
        brief: the task's text for agents.
        declared: the visible configs of all platforms, as in the spec.
        script: whether a script judges results, so that the reference is not the oracle.
    """

    deterministic: bool = True
    samples: int = 200
    expert: bool = True
    brief: str = ""
    declared: tuple[Mapping[str, Any], ...] = ()
    script: bool = False


@dataclass(frozen=True)
class Check:
    """One reason to reject a task, with its check, which returns evidence or ""."""

    reason: str
    find: Callable[[], str]


@dataclass(frozen=True)
class Report:
    """The finding of one check."""

    reason: str
    evidence: str = ""
    outcome: str = PASS

    def to_json(self) -> dict[str, str]:
        """As a case of ``verdict.json``."""
        return {
            "check": self.reason,
            "verdict": self.outcome,
            "reason": self.reason if self.outcome == REJECTED else "",
            "detail": self.evidence,
        }


def run(spec: Spec, launcher: Launching) -> Verdict:
    """Judge a task. Raises SpecError and MachineFault, if nothing was judged."""
    policy = read_policy(AdmissionPolicy, spec.policy)
    if policy.samples < 1:
        raise SpecError("a policy needs at least one sample")
    try:
        subject = Subject(spec)
        judge = Judge.assemble(spec, launcher, policy)
    except TaskFault as fault:
        return _verdict([Report("REFERENCE_FAILS", str(fault), REJECTED)], "")
    gate = _Admission(spec, policy, subject, judge)
    try:
        return _verdict(*gate.reports())
    finally:
        judge.kill()


class _Admission:
    """One judging of a task."""

    def __init__(self, spec: Spec, policy: AdmissionPolicy, subject: Subject, judge: Judge) -> None:
        self._spec = spec
        self._policy = policy
        self._subject = subject
        self._judge = judge
        self._drawn = own_kernels.draw(spec, policy.samples)
        self._slacks: Mapping[str, list[Mapping[str, float]]] = {}

    def reports(self) -> tuple[list[Report], str]:
        """The findings of all checks, and a summary of what was tried."""
        reports: list[Report] = []
        for checks in (
            self._declared,
            self._runs,
            self._oracle,
            self._visible,
            self._compared,
            self._sampled,
        ):
            stage = checks()
            if any(report.outcome == REJECTED for report in reports):
                reports += (Report(check.reason, outcome=SKIPPED) for check in stage)
            else:
                reports += _made(stage)
        kernels = " and ".join(self._kernels())
        configs = len(self._subject.spec.configs)
        return reports, f"{kernels}: {configs} visible and {len(self._drawn)} sampled configs"

    def _declared(self) -> Sequence[Check]:
        return (
            Check("BRIEF_TOO_SHORT", self._brief),
            Check("CONFIG_INVALID", self._configs),
        )

    def _runs(self) -> Sequence[Check]:
        return (
            Check("ORACLE_NOT_FLOAT64", lambda: exactness.refuses_float64(self._subject)),
            Check("REFERENCE_FAILS", self._reference),
        )

    def _oracle(self) -> Sequence[Check]:
        subject, assessor = self._subject, self._judge.assessor
        sampled = set(assessor.sampled)
        exact = Check("ORACLE_NOT_FLOAT64", lambda: exactness.not_float64(subject, sampled))
        return (
            Check("SEEDS_IGNORED", lambda: filters.seeds_ignored(subject)),
            Check("NOT_FINITE", lambda: filters.not_finite(subject, sampled)),
            Check("RANGE", lambda: filters.in_range(subject)),
            Check("SEED_INSENSITIVE", lambda: filters.seed_insensitive(subject)),
            Check("AXIS_CONSTANT", lambda: filters.axis_constant(subject)),
            Check("INPUT_IGNORED", lambda: filters.input_ignored(subject)),
            *([] if self._policy.script else [exact]),
            Check("ORACLE_REJECTED", lambda: wrong_outputs.truth_fails(subject, assessor)),
        )

    def _visible(self) -> Sequence[Check]:
        return (Check("SPACE_NOT_COVERED", self._visible_configs),)

    def _compared(self) -> Sequence[Check]:
        tolerant = Check("TOO_TOLERANT", self._tolerant)
        repeated = Check("BASELINE_NONDETERMINISTIC", self._repeated)
        return (tolerant, repeated) if self._policy.deterministic else (tolerant,)

    def _sampled(self) -> Sequence[Check]:
        return (Check("SPACE_NOT_COVERED", self._sampled_configs),)

    def _brief(self) -> str:
        words = self._policy.brief.split()
        letters = sum(map(len, words))
        if len(words) >= BRIEF_WORDS and letters >= BRIEF_LETTERS:
            return ""
        return (
            f"the brief has {len(words)} words with {letters} characters; what the kernel "
            f"computes takes at least {BRIEF_WORDS} with {BRIEF_LETTERS}"
        )

    def _configs(self) -> str:
        spec = self._spec
        shown = ({"name": c.name, "dims": c.dims, "dtype": c.dtype} for c in spec.configs)
        for config in (*shown, *self._policy.declared):
            dims = {str(name): value for name, value in dict(config["dims"]).items()}
            if not spec.space.contains(dims) or config["dtype"] not in spec.space.dtypes:
                return f"config {config['name']} is outside the shape space"
            try:
                empty = largest_tensor(spec.signature, dims) < 1 or any(
                    math.prod(shapes.shape(argument, dims)) < 1
                    for argument in spec.signature.outputs
                )
            except shapes.ShapeError as error:
                return f"config {config['name']}: {error}"
            if empty:
                return f"config {config['name']} has an output without elements"
        return ""

    def _reference(self) -> str:
        subject = self._subject
        if not subject.observed:
            return "the reference has no visible config to compute"
        for seen in subject.observed:
            repeatable.require(subject.oracle, seen.config, seen.calls[0].inputs)
        return ""

    def _visible_configs(self) -> str:
        ran = own_kernels.visible(self._judge, self._subject, self._kernels())
        self._slacks = ran.slacks
        return ran.problem

    def _tolerant(self) -> str:
        return wrong_outputs.too_tolerant(self._subject, self._judge.assessor, self._slacks)

    def _repeated(self) -> str:
        return own_kernels.nondeterministic(self._subject, self._judge.baseline)

    def _sampled_configs(self) -> str:
        found = own_kernels.sampled(self._judge, self._kernels(), self._drawn)
        if found:
            return found
        try:
            self._judge.finish()
        except CandidateFault as fault:
            return f"{fault.reason.value}: {fault.detail}"
        return ""

    def _kernels(self) -> Mapping[str, Side]:
        """The task's own kernels, the baseline first."""
        baseline = {"baseline": self._judge.baseline}
        return {**baseline, "expert": self._judge.candidate} if self._policy.expert else baseline


def _made(checks: Sequence[Check]) -> list[Report]:
    """Run checks; a failing oracle becomes a separate finding."""
    reports = []
    for check in checks:
        try:
            evidence, reason = check.find(), check.reason
        except TaskFault as fault:
            evidence, reason = str(fault), "REFERENCE_FAILS"
        reports.append(Report(reason, evidence, REJECTED if evidence else PASS))
    return reports


def _verdict(reports: Sequence[Report], tried: str) -> Verdict:
    cases = [report.to_json() for report in reports]
    problems = [report for report in reports if report.outcome == REJECTED]
    if not problems:
        return Verdict("admission", PASS, "", f"{len(reports)} checks; {tried}", "", cases)
    first = problems[0]
    return Verdict(
        "admission",
        REJECTED,
        first.reason,
        summary=first.evidence.partition("\n")[0],
        detail="\n".join(f"{report.reason}: {report.evidence}" for report in problems),
        cases=cases,
    )
