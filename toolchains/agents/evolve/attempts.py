"""The results of proposals, and what later prompts say about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, unique

from judging import Judgement

_MOST_DETAIL = 1200
"""Characters of what a gate says; the beginning and the end are kept."""


@unique
class Outcome(Enum):
    """How a proposal ended.

    KEPT: right, and faster beyond the noise: it is the kernel from now on. REVERTED: right, and
    not surely faster. WRONG: a gate says so. LEFT_OUT: the soft verifier says so. MALFORMED: the
    reply has no kernel. DUPLICATE: it was proposed before. UNJUDGED: the judge failed.
    """

    KEPT = "kept"
    REVERTED = "reverted"
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
        what: what was asked for, as a word, and the config that it was about.
        note: one line on what became of it.
        detail: what the gate or the reader said, whole.
        source: the kernel, where there was one.
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
    """What the gate that failed says, shortened in the middle."""
    failed = judged.failed
    if failed is None:
        return ""
    reason = f" ({failed['reason']})" if failed.get("reason") else ""
    head = f"{failed['gate']}: {failed['verdict']}{reason}: {failed.get('summary', '')}"
    detail = str(failed.get("detail") or "")
    return head if not detail or detail == failed.get("summary") else f"{head}\n{clip(detail)}"


def clip(text: str, most: int = _MOST_DETAIL) -> str:
    """``text`` with its middle left out where it is long."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def recent(attempts: Sequence[Attempt], count: int) -> str:
    """The last ones, a line or a little more each; empty where there are none."""
    lines = []
    for attempt in attempts[-count:]:
        about = f" for {attempt.focus}" if attempt.focus else ""
        lines.append(f"- {attempt.slot} ({attempt.what}{about}): {attempt.note}")
        if attempt.outcome in {Outcome.WRONG, Outcome.MALFORMED} and attempt.detail:
            lines += [f"    {line}" for line in attempt.detail.splitlines()]
    return "\n".join(lines)


def errors(attempts: Sequence[Attempt]) -> str:
    """How often each error came up, the most frequent first, with its latest line."""
    failed = [a for a in attempts if a.outcome in {Outcome.WRONG, Outcome.MALFORMED}]
    counts = Counter(attempt.reason for attempt in failed)
    latest = {attempt.reason: attempt.note for attempt in failed}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"- {count} x {reason}: {latest[reason]}" for reason, count in ordered)
