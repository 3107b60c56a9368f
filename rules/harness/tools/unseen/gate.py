"""The unseen gate: whether the candidate is correct on hidden configs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from base import sampler
from base.program import CandidateFault
from base.sampler import Drawn, Ground
from base.spec import Spec, SpecError, read_policy
from terms.unseen import UnseenPolicy
from terms.verdict import FAIL, PASS, REJECTED, Verdict, number
from truth.finding import Finding, describe
from truth.judge import Case, Judge, Judged
from truth.oracle import TaskFault
from truth.side import Launching
from truth.stage import described

QUADRANTS = {
    (True, True): "both_pass",
    (True, False): "opt_regression",
    (False, False): "both_fail",
    (False, True): "opt_improvement",
}


@dataclass(frozen=True)
class Tried:
    """One unseen config with the results of both sides."""

    drawn: Drawn
    judged: Judged

    @property
    def quadrant(self) -> str:
        """The quadrant: which sides pass."""
        return QUADRANTS[self.judged.baseline.ok, self.judged.candidate.ok]

    @property
    def regressed(self) -> bool:
        """Whether the candidate fails where the baseline passes."""
        return self.judged.applicable and not self.judged.candidate.ok

    def to_json(self) -> dict[str, Any]:
        """As a case of ``verdict.json``."""
        config, candidate = self.drawn.config, self.judged.candidate
        return {
            "config": config.name,
            "dims": dict(config.dims),
            "dtype": config.dtype,
            "scalars": dict(config.scalars),
            "class": self.drawn.class_,
            "distribution": self.drawn.distribution,
            "quadrant": self.quadrant,
            "baseline": _found(self.judged.baseline),
            "candidate": _found(candidate),
            "worst": describe(candidate.worst),
        }


def run(spec: Spec, launcher: Launching) -> Verdict:
    """Draw unseen configs under the salt and judge both sides on each.

    Raises SpecError, TaskFault and MachineFault, if nothing was judged.
    """
    policy = read_policy(UnseenPolicy, spec.policy)
    if policy.cycles < 1:
        raise SpecError("a policy needs at least one cycle of unseen configs")
    drawn = sampler.draw(Ground.of(spec), spec.salt, policy.cycles)
    if not drawn.configs:
        raise TaskFault("the shape space has no config beside the visible ones")
    judge = Judge.assemble(spec, launcher, policy, timed=False)
    cases = [[Case("unseen", item.config, item.distribution)] for item in drawn.configs]
    tried: list[Tried] = []
    try:
        judging = zip(drawn.configs, judge.judge_each(cases), strict=True)
        tried += (Tried(item, judged) for item, (judged,) in judging)
        judge.finish()
    except CandidateFault as fault:
        outcome, reason = _outcome(Finding.of(fault))
        verdict = _verdict(tried, drawn.missing)
        return replace(
            verdict, outcome=outcome, reason=reason, summary=fault.detail, detail=fault.detail
        )
    finally:
        judge.kill()
    return _verdict(tried, drawn.missing)


def _verdict(tried: Sequence[Tried], missing: Sequence[str]) -> Verdict:
    counts = Counter(item.quadrant for item in tried)
    quadrants = {name: counts[name] for name in QUADRANTS.values()}
    extra: Mapping[str, Any] = {
        "quadrants": quadrants,
        "conditional_correctness": conditional_correctness(quadrants),
        "sampler": {"version": sampler.VERSION, "missing": list(missing)},
    }
    cases = [item.to_json() for item in tried]
    regressed = [item for item in tried if item.regressed]
    sound = quadrants["both_pass"] + quadrants["opt_improvement"]
    count = f"{sound} of {len(tried)} unseen configs pass"
    if not regressed:
        return Verdict("unseen", PASS, "", count, "", cases, extra)
    regressed.sort(key=lambda item: not item.judged.candidate.rejected)
    first = regressed[0].judged
    outcome, reason = _outcome(first.candidate)
    return Verdict(
        "unseen",
        outcome,
        reason,
        summary=f"{count}; {len(regressed)} of the failed ones pass with the baseline",
        detail="\n".join(_line(item) for item in regressed),
        cases=cases,
        extra=extra,
    )


def _outcome(finding: Finding) -> tuple[str, str]:
    """The verdict's outcome and reason for a failure."""
    assert finding.reason is not None
    return REJECTED if finding.rejected else FAIL, finding.reason.value


def conditional_correctness(quadrants: Mapping[str, int]) -> float | str | None:
    """P(candidate passes | baseline passes); None if the baseline never does."""
    base = quadrants["both_pass"] + quadrants["opt_regression"]
    return number(quadrants["both_pass"] / base) if base else None


def _line(item: Tried) -> str:
    finding = item.judged.candidate
    case = item.judged.case
    return f"{finding.detail or finding.reason}\n  in {described(case.config, case.distribution)}"


def _found(finding: Finding) -> str:
    return "PASS" if finding.reason is None else finding.reason.value
