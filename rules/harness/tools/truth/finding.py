"""The finding of one call: right, or wrong with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from base.program import CandidateFault
from terms.reasons import Reason
from terms.verdict import number

from truth.tolerance import Worst


@dataclass(frozen=True)
class Finding:
    """The finding of one call: right, or wrong with a reason.

    Attributes:
        detail: lines for people; empty when right.
        worst: the element nearest to being wrong, or the most wrong; None if no element
            was compared.
    """

    reason: Reason | None = None
    detail: str = ""
    worst: Worst | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.reason is None

    @property
    def rejected(self) -> bool:
        """Whether the candidate broke a contract, instead of only computing a wrong result."""
        return self.reason is not None and self.reason.rejects

    @classmethod
    def of(cls, fault: CandidateFault) -> Finding:
        """The finding for a fault of the runner."""
        return cls(fault.reason, fault.detail)


def severity(finding: Finding) -> tuple[bool, bool, float]:
    """A key that sorts findings from right to badly wrong."""
    excess = finding.worst.excess if finding.worst else 0.0
    return (finding.rejected, not finding.ok, excess)


def describe(worst: Worst | None) -> dict[str, Any] | None:
    """A worst element for ``verdict.json``."""
    if worst is None:
        return None
    return {
        "output": worst.output,
        "index": list(worst.index),
        "expected": number(worst.expected),
        "got": number(worst.got),
        "error": number(worst.error, 3),
        "tolerance": number(worst.tolerance, 3),
    }
