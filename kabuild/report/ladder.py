"""What two judges of a task, its original's own check and ours, say of a ladder of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kabuild.model.gate_result import GateResult
from kabuild.report.table import text_table

HEAD = ("result", "sizes", "tasks", "both pass", "theirs alone", "ours alone", "both fail")
PASSED = "PASS"


@dataclass(frozen=True)
class Ladder:
    """How many tasks there are for each result, sizes, and pair of verdicts: theirs and ours.

    A task that was tried on several configs counts once: for a wrong result by the worst config,
    which is one where theirs passes alone, for the original's own by one that fails.
    """

    counts: Mapping[tuple[str, str], Mapping[tuple[str, str], int]] = field(hash=False)

    @classmethod
    def of(cls, gates: Iterable[GateResult]) -> Ladder:
        """From the verdicts of the gate that compares both judges."""
        counts: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
        for gate in gates:
            for what, pairs in _by_result(gate).items():
                counts.setdefault(what, Counter())[_telling(pairs)] += 1
        return cls(counts)

    def rows(self) -> list[tuple[str, ...]]:
        """The rows below ``HEAD``."""
        return [
            (*what, str(sum(found.values())), *(str(found.get(pair, 0)) for pair in _PAIRS))
            for what, found in self.counts.items()
        ]

    def text(self) -> str:
        """A table for a terminal; empty if nothing was compared."""
        rows = self.rows()
        return text_table([HEAD, *rows], right=range(2, len(HEAD))) if rows else ""


_PAIRS = ((PASSED, PASSED), (PASSED, "FAIL"), ("FAIL", PASSED), ("FAIL", "FAIL"))
_WORST = (1, 2, 0, 3)
"""Of ``_PAIRS``: theirs alone, ours alone, and then both."""


def cases(gate: GateResult) -> list[Mapping[str, Any]]:
    """The cases of a verdict; of a damaged one none."""
    found = gate.data.get("cases")
    return [case for case in found if isinstance(case, dict)] if isinstance(found, list) else []


def _by_result(gate: GateResult) -> dict[tuple[str, str], list[tuple[str, str]]]:
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for case in cases(gate):
        pair = str(case.get("theirs")), str(case.get("ours"))
        if pair in _PAIRS:
            what = str(case.get("check")), str(case.get("sizes"))
            found.setdefault(what, []).append(pair)
    return found


def _telling(pairs: Sequence[tuple[str, str]]) -> tuple[str, str]:
    return next(_PAIRS[index] for index in _WORST if _PAIRS[index] in pairs)
