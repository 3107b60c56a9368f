"""Two agents on the same tasks: who is faster, by how much, and how sure that is.

Pairs are tasks, not configs or trials: those of one task are not independent. A task's figure is
the geometric mean over its judged trials, where a trial that failed counts 1.0x; so a failure
costs, and nobody leaves the denominator. Failing never wins: where only one of two is right, it
wins, however slow. What was not judged is in no pair, and named.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from kabuild.report.agent_end import agent_end
from kabuild.report.evaluation import Evaluation, TaskResult
from kabuild.report.judgement import is_judged, typical_gain, unjudged

RESAMPLES = 10_000
TIE = 0.02
"""Ratios nearer to 1 than this are ties: no measurement here is more precise."""


@dataclass(frozen=True)
class Pair:
    """One task: the figures of both, and the shares of their judged trials that were right."""

    task: str
    one: float
    other: float
    one_right: float
    other_right: float

    @property
    def ratio(self) -> float:
        """How many times faster the first one's kernels are.

        Where only one is right, at least 1 in its favour: a kernel that is right and slow is
        worth no less than none.
        """
        ratio = self.one / self.other
        if self.only_right == 1:
            return max(1.0, ratio)
        return min(1.0, ratio) if self.only_right else ratio

    @property
    def winner(self) -> int:
        """1 or 2, or 0 for a tie; the one that is right where the other never was."""
        if self.only_right:
            return self.only_right
        if abs(math.log(self.ratio)) <= math.log(1 + TIE):
            return 0
        return 1 if self.ratio > 1 else 2

    @property
    def only_right(self) -> int:
        """Which of the two is the only one that was ever right; 0 where that is neither."""
        if bool(self.one_right) == bool(self.other_right):
            return 0
        return 1 if self.one_right else 2


@dataclass(frozen=True)
class Comparison:
    """All pairs.

    Attributes:
        ratio: geometric mean of the pairs' ratios, with its 95 % interval ``low`` to ``high``
            from a paired bootstrap over tasks. None where there is no pair, since nothing that
            both have was judged.
        p_value: of the sign test, two-sided and exact: how often a fair coin is as uneven as
            the wins are. 1.0 where there are ties only.
        wins, losses, ties: of the first one.
        costs: seconds, tokens and dollars of each one's sessions, where known.
        ended: of each one, how its agent ended by label, where it did not finish.
        unjudged: of each one, why by label, the trials that were not judged.
        unpaired: tasks that only one has.
        timed: whether anybody asked for times. Where nobody did, who is right is all that counts.
    """

    names: tuple[str, str]
    pairs: tuple[Pair, ...]
    ratio: float | None
    low: float | None
    high: float | None
    p_value: float
    wins: int
    losses: int
    ties: int
    costs: tuple[Mapping[str, float], Mapping[str, float]]
    ended: tuple[Mapping[str, str], Mapping[str, str]]
    unjudged: tuple[Mapping[str, str], Mapping[str, str]]
    unpaired: tuple[str, ...]
    timed: bool

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out 1, and there are enough pairs to say so."""
        if len(self.pairs) < FEWEST or self.low is None or self.high is None:
            return False
        return not self.low <= 1.0 <= self.high

    def to_json(self) -> dict[str, Any]:
        """For programs: the fields, and of each pair its ratio and who wins it."""
        pairs = [{**asdict(p), "ratio": p.ratio, "winner": p.winner} for p in self.pairs]
        return {**asdict(self), "pairs": pairs, "significant": self.significant}


FEWEST = 5
"""With fewer pairs no interval of a bootstrap means what it says."""


def compare(one: Evaluation, other: Evaluation) -> Comparison:
    """Pair the tasks that both have. Raises ValueError where there is none."""
    first, second = _by_task(one), _by_task(other)
    both = sorted(first.keys() & second.keys())
    if not both:
        msg = f"{one.name} and {other.name} have no task in common"
        raise ValueError(msg)
    pairs = tuple(
        _pair(task, first[task], second[task]) for task in both if first[task] and second[task]
    )
    logs = [math.log(pair.ratio) for pair in pairs]
    low, high = _interval(logs) if logs else (None, None)
    winners = [pair.winner for pair in pairs]
    wins, losses = winners.count(1), winners.count(2)
    return Comparison(
        names=(one.name, other.name),
        pairs=pairs,
        ratio=math.exp(statistics.fmean(logs)) if logs else None,
        low=low,
        high=high,
        p_value=sign_test(wins, losses),
        wins=wins,
        losses=losses,
        ties=winners.count(0),
        costs=(_costs(one), _costs(other)),
        ended=(_ended(one), _ended(other)),
        unjudged=(unjudged(one.results), unjudged(other.results)),
        unpaired=tuple(sorted(first.keys() ^ second.keys())),
        timed=any("perf" in result.gates for result in (*one.results, *other.results)),
    )


def sign_test(wins: int, losses: int) -> float:
    """The exact two-sided p-value of so many wins among wins and losses."""
    total, most = wins + losses, max(wins, losses)
    if total == 0:
        return 1.0
    tail = sum(math.comb(total, k) for k in range(most, total + 1))
    return min(1.0, float(2 * tail / 2**total))


def _by_task(evaluation: Evaluation) -> dict[str, list[TaskResult]]:
    """The judged trials of each task; a task none of whose trials was judged has none."""
    found: dict[str, list[TaskResult]] = {}
    for result in evaluation.results:
        judged = found.setdefault(result.task.short, [])
        if is_judged(result):
            judged.append(result)
    return found


def _pair(task: str, one: Sequence[TaskResult], other: Sequence[TaskResult]) -> Pair:
    return Pair(task, typical_gain(one), typical_gain(other), _right(one), _right(other))


def _right(trials: Sequence[TaskResult]) -> float:
    return statistics.fmean(trial.correct for trial in trials)


def _interval(logs: Sequence[float]) -> tuple[float, float]:
    """The 95 % percentile interval of the mean, as a ratio; the same for the same figures."""
    random = Random(0)  # noqa: S311 - no secret
    means = sorted(statistics.fmean(random.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
    ends = (means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1])
    return math.exp(ends[0]), math.exp(ends[1])


def _ended(evaluation: Evaluation) -> dict[str, str]:
    told = {r.task.in_trial(r.trial).short: agent_end(r.agent) for r in evaluation.results}
    return {label: end for label, end in told.items() if end}


def _costs(evaluation: Evaluation) -> dict[str, float]:
    """Sums over sessions; a unit that no session reports is left out."""
    sums: dict[str, float] = {}
    for result in evaluation.results:
        usage = result.agent.get("usage") or {}
        known = {"seconds": result.agent.get("seconds"), **usage}
        for unit, value in known.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                sums[unit] = sums.get(unit, 0.0) + value
    return {unit: round(value, 4) for unit, value in sums.items() if value}
