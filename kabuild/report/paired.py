"""Two agents on the same tasks: who is faster, by how much, and how sure that is.

Pairs are tasks, not configs or trials: those of one task are not independent. A task's figure is
the geometric mean over its trials, where a trial that failed counts 1.0x; so a failure costs, and
nobody leaves the denominator.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from kabuild.report.evaluation import Evaluation, TaskResult

RESAMPLES = 10_000
TIE = 0.02
"""Ratios nearer to 1 than this are ties: no measurement here is more precise."""


@dataclass(frozen=True)
class Pair:
    """One task: the figures of both, and the shares of trials that were right."""

    task: str
    one: float
    other: float
    one_right: float
    other_right: float

    @property
    def ratio(self) -> float:
        """How many times faster the first one's kernels are."""
        return self.one / self.other

    @property
    def winner(self) -> int:
        """1 or 2, or 0 for a tie."""
        if abs(math.log(self.ratio)) <= math.log(1 + TIE):
            return 0
        return 1 if self.ratio > 1 else 2


@dataclass(frozen=True)
class Comparison:
    """All pairs.

    Attributes:
        ratio: geometric mean of the pairs' ratios, with its 95 % interval ``low`` to ``high``
            from a paired bootstrap over tasks.
        p_value: of the sign test, two-sided and exact: how often a fair coin is as uneven as
            the wins are. 1.0 where there are ties only.
        wins, losses, ties: of the first one.
        costs: seconds, tokens and dollars of each one's sessions, where known.
    """

    names: tuple[str, str]
    pairs: tuple[Pair, ...]
    ratio: float
    low: float
    high: float
    p_value: float
    wins: int
    losses: int
    ties: int
    costs: tuple[Mapping[str, float], Mapping[str, float]]

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out 1, and there are enough pairs to say so."""
        return len(self.pairs) >= _FEWEST and not self.low <= 1.0 <= self.high


_FEWEST = 5
"""With fewer pairs no interval of a bootstrap means what it says."""


def compare(one: Evaluation, other: Evaluation) -> Comparison:
    """Pair the tasks that both have. Raises ValueError where there is none."""
    first, second = _by_task(one), _by_task(other)
    pairs = tuple(
        Pair(
            task,
            _figure(first[task]),
            _figure(second[task]),
            _right(first[task]),
            _right(second[task]),
        )
        for task in sorted(first.keys() & second.keys())
    )
    if not pairs:
        msg = f"{one.name} and {other.name} have no task in common"
        raise ValueError(msg)
    logs = [math.log(pair.ratio) for pair in pairs]
    low, high = _interval(logs)
    winners = [pair.winner for pair in pairs]
    wins, losses = winners.count(1), winners.count(2)
    return Comparison(
        names=(one.name, other.name),
        pairs=pairs,
        ratio=math.exp(statistics.fmean(logs)),
        low=math.exp(low),
        high=math.exp(high),
        p_value=sign_test(wins, losses),
        wins=wins,
        losses=losses,
        ties=winners.count(0),
        costs=(_costs(one), _costs(other)),
    )


def sign_test(wins: int, losses: int) -> float:
    """The exact two-sided p-value of so many wins among wins and losses."""
    total, most = wins + losses, max(wins, losses)
    if total == 0:
        return 1.0
    tail = sum(math.comb(total, k) for k in range(most, total + 1))
    return min(1.0, float(2 * tail / 2**total))


def render_comparison(found: Comparison) -> str:
    """For people."""
    one, other = found.names
    width = max(len(pair.task) for pair in found.pairs)
    lines = [f"{'task':{width}}  {one:>12}  {other:>12}  ratio"]
    for pair in found.pairs:
        mark = {0: "=", 1: "+", 2: "-"}[pair.winner]
        figures = (
            f"{_told(pair.one, pair.one_right):>12}  {_told(pair.other, pair.other_right):>12}"
        )
        lines.append(f"{pair.task:{width}}  {figures}  {pair.ratio:.3f}x {mark}")
    sure = "significant" if found.significant else "not significant"
    if len(found.pairs) < _FEWEST:
        sure = f"{len(found.pairs)} tasks are too few to be sure of anything"
    interval = f"95 % interval {found.low:.3f} to {found.high:.3f}"
    counts = f"{found.wins} wins, {found.losses} losses, {found.ties} ties"
    lines += [
        "",
        f"{one} / {other}: {found.ratio:.3f}x, {interval} ({sure})",
        f"{counts}; sign test p = {found.p_value:.3g}",
    ]
    lines += [
        f"{name}: " + ", ".join(f"{value:g} {unit}" for unit, value in costs.items())
        for name, costs in zip(found.names, found.costs, strict=True)
        if costs
    ]
    return "\n".join(lines)


def _told(figure: float, right: float) -> str:
    return f"{figure:.2f}x" if right == 1.0 else f"{figure:.2f}x {right:.0%}"


def _by_task(evaluation: Evaluation) -> dict[str, list[TaskResult]]:
    found: dict[str, list[TaskResult]] = {}
    for result in evaluation.results:
        found.setdefault(result.task.short, []).append(result)
    return found


def _figure(trials: Sequence[TaskResult]) -> float:
    return statistics.geometric_mean([trial.speedup or 1.0 for trial in trials])


def _right(trials: Sequence[TaskResult]) -> float:
    return sum(trial.correct for trial in trials) / len(trials)


def _interval(logs: Sequence[float]) -> tuple[float, float]:
    """The 95 % percentile interval of the mean; the same for the same figures."""
    random = Random(0)  # noqa: S311 - no secret
    means = sorted(statistics.fmean(random.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


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
