"""Whether an action may run, given how its dependencies settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kabuild.model.action import Action
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.model.verdict import Verdict


@dataclass(frozen=True)
class Stopped:
    """An action that will not run: how it settles instead, and the root cause."""

    outcome: Outcome
    because: str
    by: Label


def stopped(action: Action, settled: Mapping[str, Settled]) -> Stopped | None:
    """Why ``action`` will not run, or None if it may; its dependencies have all settled.

    An interruption comes first, then an infrastructure failure: both leave dependents unjudged. A
    failed or skipped producer skips them. A gate that did not pass skips those that require it;
    others may read its verdict, as a score gate does.
    """
    before = [settled[label] for label in action.dependencies()]
    for outcome in (Outcome.CANCELLED, Outcome.INFRA):
        for one in before:
            if one.outcome is outcome:
                return because_of(one, outcome)
    for one in before:
        if one.outcome is Outcome.FAILED or (one.outcome is Outcome.SKIPPED and not one.verdict):
            return because_of(one, Outcome.SKIPPED)
    for label in action.requires:
        one = settled[str(label)]
        if one.verdict and one.verdict.verdict is not Verdict.PASS:
            return because_of(one, Outcome.SKIPPED)
    return None


def because_of(culprit: Settled, outcome: Outcome) -> Stopped:
    """Stopped by ``culprit``, or by what stopped that one."""
    if culprit.stopped_by:
        return Stopped(outcome, culprit.message, culprit.stopped_by)
    if culprit.verdict:
        because = f"{culprit.verdict.gate}: {culprit.verdict.verdict.value}"
    else:
        because = culprit.account.partition("\n")[0]
    return Stopped(outcome, because, culprit.label)


def did_not_pass(settled: Settled) -> bool:
    """Whether a build without --keep_going stops here."""
    if settled.verdict:
        return settled.verdict.verdict in {Verdict.FAIL, Verdict.REJECTED}
    return settled.outcome in {Outcome.FAILED, Outcome.INFRA}
