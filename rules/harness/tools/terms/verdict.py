"""Verdicts of gates, with one canonical form: equal content has equal bytes.

All gates, including those of compilers, write it here, and programs in sandboxes read it here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PASS = "PASS"  # noqa: S105 - no password
FAIL = "FAIL"
REJECTED = "REJECTED"
SKIPPED = "SKIPPED"
OUTCOMES = (PASS, FAIL, REJECTED, SKIPPED)
VERDICT_FILE = "verdict.json"


@dataclass(frozen=True)
class Verdict:
    """The content of one ``verdict.json``.

    Attributes:
        outcome: PASS; FAIL (wrong, late or crashing work); REJECTED (a broken contract or a
            cheat); SKIPPED (an earlier gate stopped this one).
        reason: UPPER_SNAKE, empty only on PASS.
        summary: one line for people.
        detail: more lines for people.
        cases: what was tried, one mapping each; each gate defines the keys.
        extra: further keys that belong to the gate.
        files: files to write beside the verdict, by name.
    """

    gate: str
    outcome: str
    reason: str = ""
    summary: str = ""
    detail: str = ""
    cases: Sequence[Mapping[str, Any]] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"unknown outcome: {self.outcome!r}")
        if (self.outcome == PASS) == bool(self.reason):
            raise ValueError(f"{self.outcome} with reason {self.reason!r}")

    def to_json(self) -> bytes:
        """The canonical bytes. Raises ``ValueError`` for a NaN or an infinity in ``extra``."""
        return canonical_json(
            {
                **self.extra,
                "schema": 1,
                "gate": self.gate,
                "verdict": self.outcome,
                "reason": self.reason,
                "summary": self.summary,
                "detail": self.detail,
                "cases": [dict(case) for case in self.cases],
            }
        )


def write_verdict(verdict: Verdict, folder: Path = Path("out")) -> None:
    """Write ``verdict.json``, and the files beside it, into ``folder``."""
    folder.mkdir(exist_ok=True)
    for name, content in {**verdict.files, VERDICT_FILE: verdict.to_json()}.items():
        (folder / name).write_bytes(content)


def canonical_json(value: Any) -> bytes:
    """``value`` as UTF-8 JSON: sorted keys, no spaces, one newline at the end."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    # A candidate's text may hold lone surrogates, which must not stop a gate.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def read_verdict(path: Path, gate: str) -> dict[str, Any]:
    """The verdict of ``gate`` in ``path``.

    Raises ``ValueError`` if the file holds anything but a verdict of that gate.
    """
    value = json.loads(path.read_bytes())
    if not isinstance(value, dict) or value.get("schema") != 1:
        raise ValueError(f"{path.name} is not a verdict of schema 1")
    if value.get("gate") != gate:
        raise ValueError(f"{path.name} is the verdict of {value.get('gate')!r}, not {gate!r}")
    if value.get("verdict") not in OUTCOMES:
        raise ValueError(f"{path.name} says {value.get('verdict')!r}, which is not a verdict")
    return value


def number(value: float, digits: int = 6) -> float | str:
    """``value`` for JSON, to ``digits`` significant digits; text for NaN and infinities."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(f"{value:.{digits}g}")
