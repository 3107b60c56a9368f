"""The candidates that a search goes on from."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from judging import Judgement


@dataclass(frozen=True)
class Candidate:
    """A kernel that is right.

    Attributes:
        digest: of what it says; comments do not count.
        fitness: its speedup over the kernel that the search began with, or over the task's
            baseline where that one was not right.
        slot: the question that it answers; empty for the first kernel.
        gained: by config, its part in that speedup.
        proved: what the gates said of it being right.
        timed: what they said of its times.
    """

    source: str
    digest: str
    fitness: float
    proved: Judgement
    timed: Judgement
    slot: str = ""
    gained: Mapping[str, float] = field(default_factory=dict, hash=False)


class Population:
    """At most ``size`` different candidates: the best one, and those that come next."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._best: Candidate | None = None
        self._others: list[Candidate] = []

    @property
    def best(self) -> Candidate | None:
        """The one that is kept: each was faster than the one before, beyond the noise."""
        return self._best

    @property
    def members(self) -> tuple[Candidate, ...]:
        """All of them, the best first, the others by fitness."""
        return (*([self._best] if self._best else ()), *self._others)

    def keep(self, candidate: Candidate) -> None:
        """A new best one."""
        former, self._best = self._best, candidate
        self._others = [c for c in self._others if c.digest != candidate.digest]
        if former is not None and former.digest != candidate.digest:
            self.add(former)

    def add(self, candidate: Candidate) -> None:
        """One that is right and not surely faster: it may still lead somewhere."""
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
        """Another one than this, to take from; None where there is none."""
        others = [member for member in self.members if member is not candidate]
        return source.choice(others) if others else None
