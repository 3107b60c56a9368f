"""The offline agent ``tuner``: searches a kernel's tunables by the judge's own timings.

    tuner.py KERNEL --seconds=300 --seed=1

Successive halving over at most ``--points`` of the grid, the kernel's own values among them. The
order follows from the seed; the times are the judge's, with all their noise. What measures fastest,
is right, and is faster than the kernel as it is in a measurement of its own is written to the
kernel: the best of many is partly the luckiest. Where nothing is, the kernel stays.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import kabuild_check
from halving import choose, halve
from kabuild_check import Answer
from tunables import Assignment, TunableError, apply, describe, find

SHORTEST = 0.2
"""Seconds of a first measurement, besides what starting processes takes."""

LAST = 1.0
"""Seconds of the last measurement, of the winner against the kernel as it is."""

RESERVE = 4.0
"""What the proof of a winner may take, in units of the longest check so far."""

Check = Callable[..., Answer]


class Tuner:
    """One search. ``check`` is ``kabuild_check.check``; ``now`` the monotonic clock.

    It begins no measurement that might leave too little time before ``end`` to prove a winner.
    """

    def __init__(self, text: str, check: Check, *, end: float, now: Callable[[], float]) -> None:
        self.checks = 0
        self._text = text
        self._check = check
        self._end = end
        self._now = now
        self._longest = 0.0
        self._tunables = find(text)

    def search(self, points: int, seed: int) -> str:
        """The kernel with the best values found."""
        own = tuple(tunable.default for tunable in self._tunables)
        grid = [tunable.values for tunable in self._tunables]
        chosen = [own, *(point for point in choose(grid, points, seed) if point != own)]
        ranked = halve(chosen, self._measure, shortest=SHORTEST, enough=self._is_late)
        for point, speedup in ranked:
            if point == own:
                break
            if self._is_right(point) and self._is_faster(point):
                say(f"best: {describe(self._assignment(point))}: {speedup:.3f}x")
                return apply(self._text, self._assignment(point))
        say("nothing beats the kernel as it is")
        return self._text

    def _is_late(self) -> bool:
        return self._now() + RESERVE * self._longest > self._end

    def _assignment(self, point: tuple[str, ...]) -> Assignment:
        return dict(zip(self._tunables, point, strict=True))

    def _measure(self, point: tuple[str, ...], seconds: float) -> float | None:
        """The speedup over the baseline; None where it does not compile, crashes or is wrong."""
        answer = self._ask(point, ("perf",), seconds)
        speedup = answer.speedup if answer.passed else None
        shown = "-" if speedup is None else f"{speedup:.3f}x"
        say(f"{describe(self._assignment(point))} ({seconds:g} s): {shown}")
        return speedup

    def _is_right(self, point: tuple[str, ...]) -> bool:
        answer = self._ask(point, ("correctness",), 0.0)
        if not answer.passed:
            say(f"{describe(self._assignment(point))}: {answer.summary.splitlines()[0]}")
        return answer.passed

    def _is_faster(self, point: tuple[str, ...]) -> bool:
        """Whether it beats the kernel as it is, measured once more, against that."""
        answer = self._ask(point, ("perf",), LAST, against=self._text)
        speedup = (answer.speedup or 0.0) if answer.passed else 0.0
        say(f"{describe(self._assignment(point))} against the kernel as it is: {speedup:.3f}x")
        return speedup > 1.0

    def _ask(
        self, point: tuple[str, ...], gates: Sequence[str], seconds: float, against: str = ""
    ) -> Answer:
        self.checks += 1
        source = apply(self._text, self._assignment(point))
        began = self._now()
        try:
            return self._check(source, gates=gates, budget=seconds, against=against)
        finally:
            self._longest = max(self._longest, self._now() - began)


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
        tuner = Tuner(text, kabuild_check.check, end=end, now=time.monotonic)
    except TunableError as error:
        print(f"{options.kernel.name}: {error}", file=sys.stderr)
        return 1
    if not find(text):
        say("the kernel declares no tunables: it is handed in as it is")
        return 0
    options.kernel.write_text(tuner.search(options.points, options.seed))
    say(json.dumps({"usage": {"turns": tuner.checks}}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
