"""The plan of the next generation: each proposal's parent kernel, kind of change and config."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import amdahl
from amdahl import Part
from attempts import Attempt, Outcome
from population import Candidate, Population
from prompts import Ask


class Planner:
    """Plans ``parallel`` questions at a time; the same questions for the same history.

    ``original`` is the kernel that the search began with.
    """

    def __init__(self, original: str, population: Population, seed: int, parallel: int) -> None:
        self._original = original
        self._population = population
        self._seed = seed
        self._parallel = parallel
        self.parts: tuple[Part, ...] = ()

    def begin(self, first: Candidate) -> None:
        """Record each config's share of the time of the first right kernel."""
        times = {case.config: case.new_ns for case in first.timed.cases}
        whole = sum(times.values())
        self.parts = tuple(Part(name, time / whole) for name, time in times.items() if whole)

    def helped(self, gained: dict[str, float]) -> None:
        """Record the gains of a new best kernel, by config."""
        parts = (replace(part, speedup=gained.get(part.name, 1.0)) for part in self.parts)
        self.parts = tuple(replace(part, failed=0) for part in parts)

    def plan(self, generation: int, tried: Sequence[Attempt]) -> list[tuple[str, Ask]]:
        """The questions of a generation, each with its slot."""
        last = f"{generation - 1}."
        wrong = [a for a in tried if a.outcome is Outcome.WRONG and a.source]
        fresh = [attempt for attempt in wrong if attempt.slot.startswith(last)]
        planned = []
        for index in range(self._parallel):
            slot = f"{generation}.{index + 1}"
            source = random.Random(f"{self._seed}.{slot}")  # noqa: S311 - a search, no secret
            ask = self._without_any(index, wrong) or self._with_some(index, fresh, source)
            planned.append((slot, ask))
        return planned

    def _without_any(self, index: int, wrong: Sequence[Attempt]) -> Ask | None:
        """While no kernel is correct: write one, or repair one of the latest attempts."""
        if self._population.best is not None:
            return None
        if not wrong:
            return Ask("write", self._original)
        return _repair(wrong[-1 - index % len(wrong)])

    def _with_some(self, index: int, wrong: Sequence[Attempt], source: random.Random) -> Ask:
        """First improve the best kernel; the other proposals are drawn at random."""
        best = self._population.best
        assert best is not None, "else there is no parent kernel"
        start = best if index == 0 else self._population.select(source) or best
        other = self._population.other(start, source)
        choices = ["improve", "improve", "rewrite"]
        choices += ["combine"] if other else []
        choices += ["repair"] if wrong else []
        what = "improve" if index == 0 else source.choice(choices)
        if what == "repair":
            return _repair(source.choice(wrong))
        focus, most = self._focus()
        return Ask(
            what,
            start.source,
            known=start,
            other=other if what == "combine" else None,
            focus=focus,
            most=most,
        )

    def _focus(self) -> tuple[str, float]:
        """The config with the most to gain; its turn counts as failed until it helps."""
        if not self.parts:
            return "", 1.0
        chosen = amdahl.choose(self.parts)
        most = amdahl.most(self.parts, chosen.name)
        self.parts = tuple(
            replace(part, failed=part.failed + 1) if part is chosen else part for part in self.parts
        )
        return chosen.name, most


def _repair(attempt: Attempt) -> Ask:
    return Ask("repair", attempt.source, failure=attempt.detail or attempt.note)
