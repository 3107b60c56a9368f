"""Two agents on the same tasks: which is faster, by how much, and how certainly.

Pairs are tasks, not configs or trials: those of one task are not independent. A task's figure is
the geometric mean over its judged trials, where a trial that failed counts 1.0x; so failures count,
and no task is left out. Failing never wins: if only one of two is correct, it wins, however slow.
Unjudged trials are in no pair, and named. Tasks of tier ``script`` have their own figures: they
are judged by other rules, and averaged with no other task.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from kabuild.model.figure import positive
from kabuild.model.gate import Role
from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.report.evaluation import Evaluation
from kabuild.report.judgement import SIGMAS, typical_gain, unjudged
from kabuild.report.scoreboard import agent_end

RESAMPLES = 10_000
TIE = 0.02
"""Ratios nearer to 1 than this are ties: measurements are not more precise."""


@dataclass(frozen=True)
class Pair:
    """One task: the figures of both, and their shares of correct trials.

    ``tier`` is that of the task. ``same``: both have the figures of the same measurements, so their
    ratio is 1 however wide the intervals are.
    """

    task: str
    one: Speedup
    other: Speedup
    one_right: float
    other_right: float
    tier: str = ""
    same: bool = False

    @property
    def ratio(self) -> float:
        """How many times faster the first agent's kernels are, by the middles of both figures.

        If only one is correct, at least 1 in its favour: a correct, slow kernel is worth no less
        than none.
        """
        ratio = self.one.middle / self.other.middle
        if self.only_right == 1:
            return max(1.0, ratio)
        return min(1.0, ratio) if self.only_right else ratio

    @property
    def speedup(self) -> Speedup:
        """The ratio with its 95 % interval, by the errors of measurement; without, if unknown."""
        if self.same:
            return Speedup(1.0, 1.0, 1.0)
        return Speedup(self.ratio) if self.only_right else self.one.over(self.other)

    @property
    def right(self) -> bool:
        """Whether either has a correct trial, so that there is something to compare."""
        return bool(self.one_right or self.other_right)

    @property
    def winner(self) -> int:
        """1 or 2, or 0 for a tie. The only one with a correct trial wins."""
        if self.only_right:
            return self.only_right
        if abs(math.log(self.ratio)) <= math.log(1 + TIE):
            return 0
        return 1 if self.ratio > 1 else 2

    @property
    def only_right(self) -> int:
        """Which of the two alone has a correct trial; 0 if both or neither."""
        if bool(self.one_right) == bool(self.other_right):
            return 0
        return 1 if self.one_right else 2


@dataclass(frozen=True)
class Figures:
    """What all pairs of one tier say together.

    Attributes:
        tier: of the pairs' tasks; empty for those that have none.
        tasks: the number of pairs.
        ratio: geometric mean of the pairs' ratios, with its 95 % interval ``low`` to ``high``
            from a paired bootstrap over tasks, in which each has its error of measurement. None
            where there is no pair, since nothing that both have was judged. The interval is None
            where there is one pair alone, whose error is unknown, and where nothing is right.
        p_value: of the exact two-sided sign test: the chance that a fair coin is as uneven as the
            wins. 1.0 if there are only ties.
        wins, losses, ties: of the first agent.
    """

    tier: str
    tasks: int
    ratio: float | None
    low: float | None
    high: float | None
    p_value: float
    wins: int
    losses: int
    ties: int

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 1, with enough pairs."""
        if self.tasks < FEWEST or self.low is None or self.high is None:
            return False
        return not self.low <= 1.0 <= self.high

    def to_json(self) -> dict[str, Any]:
        """For programs: the fields, and whether they are significant."""
        return {**asdict(self), "significant": self.significant}


@dataclass(frozen=True)
class Comparison:
    """All pairs.

    Attributes:
        figures: of the tasks without a tier; those of a program are its own fields.
        apart: of the tasks of each other tier.
        costs: seconds, tokens and dollars of each one's sessions, where known.
        ended: of each one, by label, how its agent ended if it did not finish.
        unjudged: of each one, by label, why trials were not judged.
        unpaired: tasks that only one has.
        timed: whether times were requested. Otherwise only correctness counts.
    """

    names: tuple[str, str]
    pairs: tuple[Pair, ...]
    figures: Figures
    apart: tuple[Figures, ...]
    costs: tuple[Mapping[str, float], Mapping[str, float]]
    ended: tuple[Mapping[str, str], Mapping[str, str]]
    unjudged: tuple[Mapping[str, str], Mapping[str, str]]
    unpaired: tuple[str, ...]
    timed: bool

    def to_json(self) -> dict[str, Any]:
        """For programs: the fields, and the ratio and winner of each pair.

        The figures of tasks without a tier stand beside ``pairs``; ``apart`` has the others'.
        """
        told = asdict(self)
        figures = {k: v for k, v in self.figures.to_json().items() if k not in {"tier", "tasks"}}
        return {
            **{name: told[name] for name in told if name != "figures"},
            **figures,
            "apart": [one.to_json() for one in self.apart],
            "pairs": [_pair_to_json(pair) for pair in self.pairs],
        }


FEWEST = 5
"""With fewer pairs, the interval of a bootstrap is not valid."""


def compare(one: Evaluation, other: Evaluation) -> Comparison:
    """Pair the tasks that both have. Raises ValueError if there is none."""
    first, second = _by_task(one), _by_task(other)
    both = sorted(first.keys() & second.keys())
    if not both:
        msg = f"{one.name} and {other.name} have no task in common"
        raise ValueError(msg)
    pairs = tuple(
        _pair(task, first[task], second[task]) for task in both if first[task] and second[task]
    )
    tiers = sorted({pair.tier for pair in pairs if pair.tier})
    return Comparison(
        names=(one.name, other.name),
        pairs=pairs,
        figures=_figures(pairs, ""),
        apart=tuple(_figures(pairs, tier) for tier in tiers),
        costs=(_costs(one), _costs(other)),
        ended=(_ended(one), _ended(other)),
        unjudged=(unjudged(one.results), unjudged(other.results)),
        unpaired=tuple(sorted(first.keys() ^ second.keys())),
        timed=any(result.timed for result in (*one.results, *other.results)),
    )


def _figures(pairs: Sequence[Pair], tier: str) -> Figures:
    """The figures of the pairs of one tier."""
    mine = [pair for pair in pairs if pair.tier == tier]
    logs = [math.log(pair.ratio) for pair in mine]
    low, high = _interval(mine)
    winners = [pair.winner for pair in mine]
    wins, losses = winners.count(1), winners.count(2)
    return Figures(
        tier=tier,
        tasks=len(mine),
        ratio=math.exp(statistics.fmean(logs)) if logs else None,
        low=low,
        high=high,
        p_value=sign_test(wins, losses),
        wins=wins,
        losses=losses,
        ties=winners.count(0),
    )


def sign_test(wins: int, losses: int) -> float:
    """The exact two-sided p-value of a number of wins among wins and losses."""
    total, most = wins + losses, max(wins, losses)
    if total == 0:
        return 1.0
    tail = sum(math.comb(total, k) for k in range(most, total + 1))
    return min(1.0, float(2 * tail / 2**total))


def _by_task(evaluation: Evaluation) -> dict[str, list[TaskResult]]:
    """The judged trials of each task; tasks without any are absent."""
    found: dict[str, list[TaskResult]] = {}
    for result in evaluation.results:
        judged = found.setdefault(result.task, [])
        if result.judged:
            judged.append(result)
    return found


def _pair(task: str, one: Sequence[TaskResult], other: Sequence[TaskResult]) -> Pair:
    tier = next((trial.tier for trial in (*one, *other) if trial.tier), "")
    gains, right = (typical_gain(one), typical_gain(other)), (_right(one), _right(other))
    measured = _measurements(one)
    same = bool(measured) and measured == _measurements(other)
    return Pair(task, *gains, *right, tier=tier, same=same)


def _measurements(trials: Sequence[TaskResult]) -> list[tuple[str, Speedup | None]]:
    """The measurements of a task's trials: keys, since equal figures may be chance, and figures."""
    return sorted(
        (
            (gate.key, trial.measured)
            for trial in trials
            for gate in trial.gates.values()
            if gate.declared.role is Role.TIMES and gate.key and gate.verdict
        ),
        key=str,
    )


def _pair_to_json(pair: Pair) -> dict[str, Any]:
    """The figures of both and their ratio are middles, each with its ends."""
    told: dict[str, Any] = {"task": pair.task}
    for name, found in (("one", pair.one), ("other", pair.other)):
        told |= {name: found.middle, f"{name}_low": found.low, f"{name}_high": found.high}
    told |= {"one_right": pair.one_right, "other_right": pair.other_right, "tier": pair.tier}
    found = pair.speedup
    told |= {"ratio": pair.ratio, "low": found.low, "high": found.high}
    return {**told, "winner": pair.winner}


def _right(trials: Sequence[TaskResult]) -> float:
    return statistics.fmean(trial.correct for trial in trials)


def _interval(pairs: Sequence[Pair]) -> tuple[float, float] | tuple[None, None]:
    """The 95 % percentile interval of the mean, as a ratio; deterministic."""
    if not any(pair.right for pair in pairs):
        return None, None
    if len(pairs) == 1:
        return pairs[0].speedup.ends or (None, None)
    random = Random(0)  # noqa: S311 - no secret
    known = [(math.log(pair.ratio), pair.speedup.errors or (0.0, 0.0)) for pair in pairs]
    means = sorted(
        statistics.fmean(_drawn(random, *one) for one in random.choices(known, k=len(known)))
        for _ in range(RESAMPLES)
    )
    ends = (means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1])
    return math.exp(ends[0]), math.exp(ends[1])


def _drawn(random: Random, middle: float, errors: tuple[float, float]) -> float:
    """A draw of a logarithm that was measured with these errors to either side."""
    deviation = random.gauss(0.0, 1.0) / SIGMAS
    return middle + deviation * errors[deviation > 0]


def _ended(evaluation: Evaluation) -> dict[str, str]:
    told = {result.label.short: agent_end(result.agent) for result in evaluation.results}
    return {label: end for label, end in told.items() if end}


def _costs(evaluation: Evaluation) -> dict[str, float]:
    """Sums over sessions; a unit that no session reports is left out."""
    sums: dict[str, float] = {}
    for result in evaluation.results:
        usage = result.agent.get("usage")
        known = {
            "seconds": result.agent.get("seconds"),
            **(usage if isinstance(usage, Mapping) else {}),
        }
        for unit in known:
            sums[unit] = sums.get(unit, 0.0) + (positive(known, unit) or 0.0)
    return {unit: round(value, 4) for unit, value in sums.items() if value}
