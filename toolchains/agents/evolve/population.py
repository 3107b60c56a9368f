"""The candidates that a search builds on."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from judging import Judgement


@dataclass(frozen=True)
class Candidate:
    """A correct kernel.

    Attributes:
        digest: of its code without comments.
        fitness: its speedup over the kernel that the search began with, or over the task's
            baseline if that kernel was wrong.
        slot: the question that it answers; empty for the first kernel.
        gained: by config, its part in that speedup.
        proved: the gates' verdicts on its correctness.
        timed: the gates' verdicts on its times.
    """

    source: str
    digest: str
    fitness: float
    proved: Judgement
    timed: Judgement
    slot: str = ""
    gained: Mapping[str, float] = field(default_factory=dict, hash=False)


class Population:
    """At most ``size`` different candidates: the best one, and the next in fitness."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._best: Candidate | None = None
        self._others: list[Candidate] = []

    @property
    def best(self) -> Candidate | None:
        """The best candidate: each was faster than the one before, beyond the noise."""
        return self._best

    @property
    def members(self) -> tuple[Candidate, ...]:
        """All candidates, the best first, the others by fitness."""
        return (*([self._best] if self._best else ()), *self._others)

    def keep(self, candidate: Candidate) -> None:
        """Add a new best candidate."""
        former, self._best = self._best, candidate
        self._others = [c for c in self._others if c.digest != candidate.digest]
        if former is not None and former.digest != candidate.digest:
            self.add(former)

    def add(self, candidate: Candidate) -> None:
        """Add a correct candidate that is not significantly faster; it may lead to a better one."""
        if any(member.digest == candidate.digest for member in self.members):
            return
        ranked = sorted([*self._others, candidate], key=lambda c: (-c.fitness, c.digest))
        self._others = ranked[: max(0, self._size - 1)]

    def select(self, source: random.Random, rounds: int = 2) -> Candidate | None:
        """By tournament: the fittest of a random sample; None if there are no candidates."""
        if not self.members:
            return None
        drawn = [source.choice(self.members) for _ in range(rounds)]
        return max(drawn, key=lambda c: (c is self._best, c.fitness))

    def other(self, candidate: Candidate, source: random.Random) -> Candidate | None:
        """A candidate other than this one, to combine with it; None if there is none."""
        others = [member for member in self.members if member is not candidate]
        return source.choice(others) if others else None
