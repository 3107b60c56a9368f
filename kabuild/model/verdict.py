"""Verdicts of gates on candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any

from kabuild.base.bounded_json import read_json
from kabuild.base.canonical import canonical_json

EARLIER_GATE = "EARLIER_GATE"
"""The reason of a gate that was skipped because an earlier one did not pass."""


@unique
class Verdict(Enum):
    """The verdict of one gate.

    REJECTED is worse than FAIL: the candidate broke a contract or tried to cheat the judge, and the
    reason says how. SKIPPED: an earlier gate did not pass. An infrastructure failure is not a
    verdict.
    """

    PASS = "PASS"  # noqa: S105 - no password
    FAIL = "FAIL"
    REJECTED = "REJECTED"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True)
class GateVerdict:
    """The content of one ``verdict.json``.

    Attributes:
        reason: machine-readable, such as ``WRONG_RESULT``; empty on PASS.
        summary: one line for people.
        detail: more lines, such as the compiler's output or the worst element.
        data: the whole file, for reports.
    """

    gate: str
    verdict: Verdict
    reason: str = ""
    summary: str = ""
    detail: str = ""
    data: Mapping[str, Any] = field(default_factory=dict, compare=False, hash=False)

    @classmethod
    def from_json(cls, data: bytes) -> GateVerdict:
        """Read ``verdict.json``. Raises ``ValueError`` for anything else."""
        value = read_json(data)
        if not isinstance(value, dict) or value.get("schema") != 1:
            msg = "no verdict of schema 1"
            raise ValueError(msg)
        texts = {key: value.get(key, "") for key in ("gate", "reason", "summary", "detail")}
        if not all(isinstance(text, str) for text in texts.values()):
            msg = "a verdict's gate, reason, summary and detail must be strings"
            raise ValueError(msg)
        return cls(verdict=Verdict(value.get("verdict")), data=value, **texts)

    @classmethod
    def skipped(cls, gate: str, because: str) -> GateVerdict:
        """The verdict of a skipped gate."""
        return cls(gate, Verdict.SKIPPED, EARLIER_GATE, because)

    def to_json(self) -> bytes:
        """The canonical bytes of ``verdict.json``."""
        fields = {
            "schema": 1,
            "gate": self.gate,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "summary": self.summary,
            "detail": self.detail,
        }
        return canonical_json({"cases": [], **self.data, **fields})
