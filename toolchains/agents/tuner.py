"""The offline agent ``tuner``: searches a kernel's tunables by the judge's own timings.

    tuner.py KERNEL --seconds=300 --seed=1

Successive halving over at most ``--points`` of the grid, each timed against the initial kernel.
Where the judge models the device's times, these are the points that the model finds fastest, in
its order; elsewhere points and order follow from the seed. The times are the judge's, with all
their noise. The best is written to the kernel where it is right and, measured once more and longer,
faster by its whole interval: the best of many is partly the luckiest. Where nothing is, the kernel
stays.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import kabuild_check
from costs import Costs
from halving import ETA, choose, halve
from kabuild_check import MOST_AT_ONCE, Answer, CheckError
from tunables import Assignment, Tunable, TunableError, apply, describe, find

SHORTEST = 1.0
"""Seconds of a first measurement, besides what a check takes by itself."""

RANKING = 0.2
"""The part of the whole time in which variants may be ranked before any is timed."""

LAST = 9.0
"""Seconds of the last measurement, where there is time for so many."""

PROOF = 0.25
"""The part of the whole time that is kept for that, where it takes so much."""

PERF, CORRECTNESS, COMPILE = "perf", "correctness", "compile"

Point = tuple[str, ...]
Check = Callable[..., Answer]


class Judge(Protocol):
    """The module ``kabuild_check``."""

    def check(
        self, source: str, gates: Sequence[str], *, budget: float = 0.0, against: str = ""
    ) -> Answer:
        """The verdicts on one kernel."""

    def compile_all(self, sources: Sequence[str]) -> Sequence[Answer]:
        """The compile gate's verdict on each, as soon as checks are possible."""

    def rank(self, sources: Sequence[str], *, seconds: float) -> Sequence[float | None]:
        """Modelled times, as far as they are known."""


class Tuner:
    """One search. ``now`` is the monotonic clock.

    It begins no measurement that, by what those before took, leaves too little time before ``end``
    to prove a winner: one check of correctness, and one measurement at least as long, or three
    times as long where ``PROOF`` of the whole time suffices for that.
    """

    def __init__(self, text: str, judge: Judge, *, end: float, now: Callable[[], float]) -> None:
        self.checks = 0
        self._text = text
        self._judge = judge
        self._end = end
        self._now = now
        self._share = PROOF * (end - now())
        self._ranking = RANKING * (end - now())
        self._costs = Costs()
        self._compiles: dict[Point, bool] = {}
        self._right: dict[Point, bool] = {}
        self._tunables = find(text)
        self._points: list[Point] = []

    def search(self, most: int, seed: int) -> str:
        """The kernel with the best values found among ``most`` points."""
        self._judge.compile_all(())  # what that takes, no other check does
        self._points = self._chosen(most, seed)
        ranked = halve(
            self._points, self._measure, shortest=SHORTEST, longest=LAST, late=self._is_late
        )
        for point, speedup in ranked:
            if speedup > 1.0 and self._is_proven(point):
                return self._kernel(point)
        say("no variant is significantly faster than the initial kernel")
        return self._text

    def _chosen(self, most: int, seed: int) -> list[Point]:
        """The points to measure, those first that the judge's model finds fastest."""
        own = tuple(tunable.default for tunable in self._tunables)
        drawn = points(self._tunables, max(most, MOST_AT_ONCE), seed)
        known = [point for point in drawn if point != own]
        if len(known) < 2:
            return known
        asked = known[:MOST_AT_ONCE]
        try:
            times = self._judge.rank([*map(self._kernel, asked)], seconds=self._ranking)
        except CheckError as error:
            say(f"in random order: {error}")
            return known[:most]
        self.checks += 1
        ranks = {point: ns for point, ns in zip(asked, times, strict=True) if ns is not None}
        say(f"in the order of modelled times: {len(ranks)} of {len(known)} are known")
        return sorted(known, key=lambda point: ranks.get(point, math.inf))[:most]

    def _is_late(self, point: Point, seconds: float) -> bool:
        taken = self._costs.bound(PERF, seconds)
        if point not in self._compiles:
            taken += self._costs.bound(COMPILE)
        return self._now() + taken + self._proof(seconds) > self._end

    def _proof(self, seconds: float) -> float:
        """The time to keep for the proof of a winner that was measured for so many seconds."""
        longer = min(self._share, self._costs.bound(PERF, ETA * seconds))
        return self._costs.bound(CORRECTNESS) + max(longer, self._costs.bound(PERF, seconds))

    def _measure(self, point: Point, seconds: float) -> float | None:
        """The speedup over the initial kernel, by the middle of its interval.

        The judge's own figure of a wide interval is its lower end: by that, one disturbed process
        would end the search. None if the point does not compile, crashes, is wrong or significantly
        slower; measured for longer than the shortest, where it is no faster. The first that is
        faster has to be right at once: from then on it is known what that proof takes.
        """
        if point not in self._compiles:
            self._compile_from(point)
        if not self._compiles[point]:
            return None
        answer = self._ask(point, PERF, seconds)
        self._tell(point, f"{seconds:g} s: {_shown(answer)}")
        if not answer.passed or answer.interval is None or answer.interval[1] < 1.0:
            return None
        speedup = math.sqrt(math.prod(answer.interval))
        if speedup <= 1.0:
            return speedup if seconds == SHORTEST else None
        return speedup if self._right or self._is_right(point) else None

    def _compile_from(self, point: Point) -> None:
        """Compile it and what follows it, as far as there will be time to measure that.

        Before anything was measured that is not known: then it alone, beside the kernel as it is.
        """
        first = not self._compiles
        each = self._costs.bound(COMPILE) + self._costs.bound(PERF, SHORTEST)
        left = self._end - self._now() - self._proof(SHORTEST)
        count = 1 if first or not each else max(1, int(left / each))
        start = self._points.index(point)
        batch = self._points[start : start + min(count, _BATCH)]
        began = self._now()
        texts = [*([self._text] if first else []), *map(self._kernel, batch)]
        answers = self._judge.compile_all(texts)
        self._costs.note(COMPILE, (self._now() - began) / len(texts))
        self.checks += 1
        for one, answer in zip(batch, answers[-len(batch) :], strict=True):
            self._compiles[one] = answer.passed
            if not answer.passed:
                self._tell(one, _first_line(answer))

    def _is_proven(self, point: Point) -> bool:
        least = self._costs.bound(CORRECTNESS) + self._costs.bound(PERF, SHORTEST)
        if point not in self._right and self._now() + least > self._end:
            return False
        return self._is_right(point) and self._is_faster(point)

    def _is_right(self, point: Point) -> bool:
        if point not in self._right:
            answer = self._ask(point, CORRECTNESS)
            self._right[point] = answer.passed
            if not answer.passed:
                self._tell(point, _first_line(answer))
        return self._right[point]

    def _is_faster(self, point: Point) -> bool:
        """Whether it beats the initial kernel, measured once more, by its whole interval."""
        seconds = min(LAST, self._costs.affordable(PERF, self._end - self._now()))
        if seconds < SHORTEST:
            return False
        answer = self._ask(point, PERF, seconds)
        self._tell(point, f"once more, {seconds:.1f} s: {_shown(answer)}")
        return answer.passed and answer.interval is not None and answer.interval[0] > 1.0

    def _ask(self, point: Point, gate: str, seconds: float = 0.0) -> Answer:
        """The verdict of a gate, asked for again where the machine failed: then raises CheckError.

        Only a check that succeeds says what the next one takes.
        """
        try:
            return self._check(point, gate, seconds)
        except CheckError as error:
            if not error.machine:
                raise
            self._tell(point, f"{gate}: {error}; asking once more")
            return self._check(point, gate, seconds)

    def _check(self, point: Point, gate: str, seconds: float) -> Answer:
        self.checks += 1
        against = self._text if gate == PERF else ""
        began = self._now()
        answer = self._judge.check(
            self._kernel(point), gates=(gate,), budget=seconds, against=against
        )
        self._costs.note(gate, self._now() - began, seconds)
        return answer

    def _kernel(self, point: Point) -> str:
        return apply(self._text, self._assignment(point))

    def _assignment(self, point: Point) -> Assignment:
        return dict(zip(self._tunables, point, strict=True))

    def _tell(self, point: Point, what: str) -> None:
        say(f"{describe(self._assignment(point))}: {what}")


_BATCH = 32
"""Points that are compiled by one request, at most; a session remembers twice as many."""


def points(tunables: Sequence[Tunable], most: int, seed: int) -> list[Point]:
    """At most ``most`` different points, in an order that follows from ``seed``.

    Those first in which tunables that share their name and values, such as the block sizes of
    two launches, have the same value: these are few, and often good.
    """
    axes = list(dict.fromkeys((tunable.name, tunable.values) for tunable in tunables))
    tied = choose([values for _, values in axes], most, seed)
    where = [axes.index((tunable.name, tunable.values)) for tunable in tunables]
    chosen = dict.fromkeys(tuple(point[axis] for axis in where) for point in tied)
    chosen |= dict.fromkeys(choose([tunable.values for tunable in tunables], most, seed))
    return list(chosen)[:most]


def _shown(answer: Answer) -> str:
    if not answer.passed or answer.interval is None:
        return _first_line(answer)
    low, high = answer.interval
    return f"{answer.speedup:.3f}x ({low:.3f} to {high:.3f})"


def _first_line(answer: Answer) -> str:
    return answer.summary.partition("\n")[0]


def say(text: str) -> None:
    """A line of the transcript."""
    print(text, flush=True)


def main(arguments: Sequence[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="searches a kernel's tunables")
    parser.add_argument("kernel", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0, help="wall time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", type=int, default=27, help="how many to try at most")
    options = parser.parse_args(arguments)
    text = options.kernel.read_text()
    end = time.monotonic() + options.seconds
    try:
        tuner = Tuner(text, kabuild_check, end=end, now=time.monotonic)
    except TunableError as error:
        print(f"{options.kernel.name}: {error}", file=sys.stderr)
        return 1
    if not find(text):
        say("the kernel declares no tunables: handing it in unchanged")
        return 0
    try:
        options.kernel.write_text(tuner.search(options.points, options.seed))
    except CheckError as error:
        print(error, file=sys.stderr)
        return 1
    say(json.dumps({"usage": {"turns": tuner.checks}}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
