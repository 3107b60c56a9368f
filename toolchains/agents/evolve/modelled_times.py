"""Chooses which proposals to time by modelled times, if the judge models the device's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from journal import Journal, key_of
from kabuild_check import MOST_AT_ONCE, CheckError

RANK = "rank"
SECONDS = 60.0
"""For one generation: kernels that are not counted by then have no modelled time."""

FAR = 8.0
"""How many times as long as the best kernel a proposal may take by the model, to be timed. Of 94
pairs of variants of one kernel whose modelled times differed by more, the model was right about all
on two H200s (``results/h200``); of those that differed by less it was not."""


class Rank(Protocol):
    """``kabuild_check.rank``."""

    def __call__(self, sources: Sequence[str], *, seconds: float) -> Sequence[float | None]:
        """The modelled times. Raises CheckError."""


class Ranking:
    """The modelled times of one search. They are in the journal, as they decide what is timed."""

    def __init__(self, rank: Rank, journal: Journal) -> None:
        self._rank = rank
        self._journal = journal
        self._known: dict[str, float] = {}
        self._is_possible = True

    def learn(self, sources: Sequence[str]) -> None:
        """Model the times of these kernels, as far as that is possible."""
        asked = [source for source in dict.fromkeys(sources) if source not in self._known]
        asked = asked[:MOST_AT_ONCE]
        if asked and self._is_possible:
            answer = self._ask(asked)
            self._is_possible = answer["possible"]
            times = zip(asked, answer["ns"], strict=True)
            self._known |= {source: ns for source, ns in times if ns is not None}

    def ns(self, source: str) -> float:
        """The modelled time of a kernel; infinite if it has none."""
        return self._known.get(source, math.inf)

    def is_hopeless(self, source: str, best: str) -> bool:
        """Whether a kernel is far slower than the best one by the model."""
        return FAR * self.ns(best) < self.ns(source) < math.inf

    def _ask(self, sources: Sequence[str]) -> dict[str, Any]:
        key = key_of(RANK, *sources)
        known = self._journal.find(RANK, key)
        if isinstance(known, dict):
            return known
        try:
            found: dict[str, Any] = {
                "possible": True,
                "ns": list(self._rank(sources, seconds=SECONDS)),
            }
        except CheckError as error:  # of a machine that fails, another question may be answered
            found = {"possible": error.machine, "ns": [None] * len(sources)}
        self._journal.write(RANK, key, found)
        return found
