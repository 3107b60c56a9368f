"""One stage of the correctness gate: its cases and their report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from base.program import CandidateFault, Config
from terms.policy import DEFAULT
from terms.reasons import Reason
from terms.verdict import FAIL, PASS, REJECTED, SKIPPED

from truth.assessment import Call, Tensors
from truth.distributions import MEANINGS
from truth.finding import Finding, describe, severity
from truth.judge import Case, Judge, Judged

Group = Sequence[Case]


@dataclass(frozen=True)
class StageReport:
    """The findings of one stage.

    Attributes:
        configs: the cases that were tried, by name.
        not_applicable: those among them on which the baseline itself fails.
        worst: the case nearest to failing, or the one that failed, for ``verdict.json``.
        timely: whether the cases were chosen by the time that they take here: a replay may have
            others.
    """

    stage: str
    outcome: str
    reason: str = ""
    detail: str = ""
    configs: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    worst: dict[str, Any] | None = None
    timely: bool = False

    def to_json(self) -> dict[str, Any]:
        """As a case of ``verdict.json``."""
        return {
            "stage": self.stage,
            "verdict": self.outcome,
            "reason": self.reason,
            "detail": self.detail,
            "configs": list(self.configs),
            "not_applicable": list(self.not_applicable),
            "worst": self.worst,
            **({"timely": True} if self.timely else {}),
        }


def skipped(stage: str) -> StageReport:
    """The report of a stage that an earlier one stopped."""
    return StageReport(stage, SKIPPED, Reason.EARLIER_GATE.value, "an earlier stage failed")


def ended(fault: CandidateFault) -> StageReport:
    """The report of a candidate that broke the protocol when its runner ended."""
    outcome = REJECTED if fault.rejected else FAIL
    return StageReport("end", outcome, fault.reason.value, fault.detail)


def run_cases(
    judge: Judge, stage: str, groups: Sequence[Group], *, excused: bool = False
) -> StageReport:
    """Judge groups of cases, each of one config, and report the worst of them.

    With ``excused``, a case on which the baseline fails too is ignored. A candidate that hangs or
    breaks a contract is not tried further.
    """
    done: list[Judged] = []
    with closing(judge.judge_each(groups)) as judging:
        for group in judging:
            done += group
            found = [judged.candidate for judged in group]
            if any(finding.rejected or finding.reason is Reason.TIMEOUT for finding in found):
                break
    counted = [judged for judged in done if judged.applicable or not excused]
    excluded = tuple(label(j.case) for j in done if excused and not j.applicable)
    tried = tuple(label(judged.case) for judged in done)
    if not counted:
        return StageReport(stage, PASS, configs=tried, not_applicable=excluded)
    decisive = max(counted, key=lambda judged: severity(judged.candidate))
    return report(stage, decisive.case, decisive.candidate, tried, excluded)


def report(
    stage: str,
    case: Case,
    finding: Finding,
    tried: tuple[str, ...],
    not_applicable: tuple[str, ...] = (),
) -> StageReport:
    """The report of a stage that ``case`` decides."""
    where = described(case.config, case.distribution)
    measured = describe(finding.worst)
    shown = {"config": case.config.name, "distribution": case.distribution, **(measured or {})}
    worst = shown if measured or not finding.ok else None
    if finding.ok:
        return StageReport(stage, PASS, "", "", tried, not_applicable, worst)
    assert finding.reason is not None
    return StageReport(
        stage,
        REJECTED if finding.rejected else FAIL,
        finding.reason.value,
        f"{finding.detail or finding.reason.value}\n  in {where}",
        tried,
        not_applicable,
        worst,
    )


def require(
    judge: Judge, call: Call, outputs: Tensors, slack: Mapping[str, float], what: str
) -> None:
    """Raise CandidateFault if a call of a timed process is wrong in spite of the ``slack``.

    ``what`` says which call it is.
    """
    finding = judge.given_the_baseline(call, outputs, slack)
    if finding.reason is not None:
        detail = finding.detail or finding.reason.value
        where = described(call.config, call.distribution)
        raise CandidateFault(finding.reason, f"{detail}\n  in {what} of {where}")


def label(case: Case) -> str:
    """A case for people: its config, and its distribution unless that is the default."""
    return name_of(case.config, case.distribution)


def name_of(config: Config, distribution: str) -> str:
    """A config's name, with the distribution unless that is the default."""
    return config.name if distribution == DEFAULT else f"{config.name} ({distribution})"


def described(config: Config, distribution: str) -> str:
    """As ``name_of``, and what the distribution does to values."""
    known = MEANINGS.get(distribution)
    if known is None:
        return name_of(config, distribution)
    return f"{config.name} ({distribution}: {known})"
