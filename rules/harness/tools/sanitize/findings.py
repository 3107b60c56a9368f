"""Findings that an instrumented kernel prints on the runner's standard error.

The sanitizer lives in the candidate's process, so the findings are untrusted: text of a known form,
cut short and made printable, that concerns only the candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from terms.reasons import Reason

from sanitize.places import Place, Places

KINDS = (
    Reason.OUT_OF_BOUNDS,
    Reason.DATA_RACE,
    Reason.DIVERGENT_BARRIER,
    Reason.UNINITIALISED,
)
"""The kinds of mistakes; the first of them that was found names the verdict."""

MOST = 50
"""How many findings a verdict lists."""

_LINE = re.compile(
    r"hipcpu-sanitizer (?P<kind>[A-Z_]{1,32}) (?P<place>\S{1,200}) (?P<other>\S{1,200}) "
    r"(?P<kernel>[^;]{1,100}); (?P<text>.{1,600})"
)
_NONE = "-"
_OTHER = "{other}"


@dataclass(frozen=True)
class Finding:
    """One mistake of a kernel.

    Attributes:
        kernel: the launched kernel, as spelt in the source; empty if unknown.
        place: where it happened; None if that is not in the author's source.
        other: the place of the other of two accesses or barriers.
        text: what happened, with block and thread.
    """

    kind: Reason
    kernel: str
    place: Place | None
    other: Place | None
    text: str

    @property
    def mistake(self) -> tuple[Reason, frozenset[Place | None]]:
        """The identity of a finding: its kind and its places, in any order."""
        return self.kind, frozenset((self.place, self.other))

    def __str__(self) -> str:
        where = str(self.place) if self.place else "somewhere"
        kernel = f" in {self.kernel}" if self.kernel else ""
        return f"{where}: {self.kind.value}{kernel}: {self.text}"

    def to_json(self) -> dict[str, Any]:
        """The finding as an entry of a verdict."""
        return {
            "kind": self.kind.value,
            "kernel": self.kernel,
            "place": str(self.place or ""),
            "other": str(self.other or ""),
            "text": self.text,
        }


def read_findings(said: str, places: Places) -> list[Finding]:
    """The findings in a runner's output; lines of another form are ignored."""
    matches = (_LINE.fullmatch(line) for line in said.splitlines())
    return [_finding(match, places) for match in matches if match and _known(match["kind"])]


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """The first finding of each mistake, the most severe first; at most ``MOST``."""
    first: dict[object, Finding] = {}
    for finding in findings:
        first.setdefault(finding.mistake, finding)
    return sorted(first.values(), key=lambda finding: KINDS.index(finding.kind))[:MOST]


def _known(kind: str) -> bool:
    return any(kind == known.value for known in KINDS)


def _finding(match: re.Match[str], places: Places) -> Finding:
    other = None if match["other"] == _NONE else places.find(match["other"])
    text = match["text"].replace(_OTHER, str(other) if other else "another place")
    kernel = "" if match["kernel"] == _NONE else match["kernel"]
    return Finding(Reason(match["kind"]), kernel, places.find(match["place"]), other, text)
