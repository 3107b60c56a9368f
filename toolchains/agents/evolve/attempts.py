"""The results of proposals, and what later prompts say about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, unique

from judging import Judgement

_MOST_DETAIL = 1200
"""Characters of a gate's message; its beginning and end are kept."""


@unique
class Outcome(Enum):
    """How a proposal ended.

    KEPT: correct, and faster beyond the noise, so it is the new best kernel. REVERTED: correct,
    but not significantly faster. SLOW: correct, but by modelled times so much slower than the best
    kernel that it was not timed. WRONG: a gate failed it. LEFT_OUT: the soft verifier rejected it.
    MALFORMED: the reply has no kernel. DUPLICATE: proposed before. UNJUDGED: the judge failed.
    """

    KEPT = "kept"
    REVERTED = "reverted"
    SLOW = "slow"
    WRONG = "wrong"
    LEFT_OUT = "left out"
    MALFORMED = "malformed"
    DUPLICATE = "duplicate"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class Attempt:
    """One proposal.

    Attributes:
        slot: the question that it answers.
        what: the kind of change that was asked for, in one word, and its config.
        note: one line about the result.
        detail: the whole message of the gate or the reviewer.
        source: the kernel, if there was one.
        reason: why it failed, as one word.
    """

    slot: str
    what: str
    focus: str
    outcome: Outcome
    note: str
    detail: str = ""
    source: str = ""
    reason: str = ""


def failure_text(judged: Judgement) -> str:
    """The failed gate's message, shortened in the middle."""
    failed = judged.failed
    if failed is None:
        return ""
    reason = f" ({failed['reason']})" if failed.get("reason") else ""
    head = f"{failed['gate']}: {failed['verdict']}{reason}: {failed.get('summary', '')}"
    detail = str(failed.get("detail") or "")
    return head if not detail or detail == failed.get("summary") else f"{head}\n{clip(detail)}"


def clip(text: str, most: int = _MOST_DETAIL) -> str:
    """``text``, without its middle if it is long."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def recent(attempts: Sequence[Attempt], count: int) -> str:
    """The latest attempts, a line or a little more each; empty if there are none."""
    lines = []
    for attempt in attempts[-count:]:
        about = f" for {attempt.focus}" if attempt.focus else ""
        lines.append(f"- {attempt.slot} ({attempt.what}{about}): {attempt.note}")
        if attempt.outcome in {Outcome.WRONG, Outcome.MALFORMED} and attempt.detail:
            lines += [f"    {line}" for line in attempt.detail.splitlines()]
    return "\n".join(lines)


def errors(attempts: Sequence[Attempt]) -> str:
    """How often each error occurred, the most frequent first, with its latest line."""
    failed = [a for a in attempts if a.outcome in {Outcome.WRONG, Outcome.MALFORMED}]
    counts = Counter(attempt.reason for attempt in failed)
    latest = {attempt.reason: attempt.note for attempt in failed}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"- {count} x {reason}: {latest[reason]}" for reason, count in ordered)
