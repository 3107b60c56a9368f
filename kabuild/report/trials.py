"""Several trials of one agent at one task, as one result: pass@k, best@k, mean and spread.

A failed trial counts as 1.0x. Trials with infrastructure failures are excluded, and named.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from kabuild.model.label import Label
from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.report.judgement import gain
from kabuild.report.table import text_table


@dataclass(frozen=True)
class Trials:
    """The figures of one task's trials.

    Attributes:
        label: the task.
        passed: for each judged trial, whether all requested gates passed.
        speedups: the middles of the same trials'; 1.0 for a failed one. Empty if no score was
            requested.
        ends: the ends of their intervals; empty if one is unknown.
        unjudged: numbers of the unjudged trials.
    """

    label: Label
    passed: tuple[bool, ...]
    speedups: tuple[float, ...]
    unjudged: tuple[int, ...] = ()
    ends: tuple[tuple[float, float], ...] = ()

    @property
    def pass_at(self) -> tuple[float, ...]:
        """For k = 1, 2, ...: the chance that one of k trials passes, estimated without bias.

        That is 1 minus the share of all choices of k among these trials without a passing one.
        """
        total, failed = len(self.passed), self.passed.count(False)
        return tuple(1 - comb(failed, k) / comb(total, k) for k in range(1, total + 1))

    @property
    def best_at(self) -> tuple[float, ...]:
        """For k = 1, 2, ...: the expected speedup of the best of k trials, likewise."""
        return _best_at(self.speedups)

    @property
    def mean(self) -> float | None:
        """The mean of the speedups."""
        return statistics.fmean(self.speedups) if self.speedups else None

    def shown(self, figure: Callable[[Sequence[float]], float]) -> Speedup:
        """A figure that grows with each speedup, between those of all lower and all upper ends."""
        middle = figure(self.speedups)
        if not self.ends:
            return Speedup(middle)
        low, high = (figure(ends) for ends in zip(*self.ends, strict=True))
        return Speedup.around(middle, low, high)

    @property
    def spread(self) -> float | None:
        """The standard deviation of the speedups, as a sample."""
        return statistics.stdev(self.speedups) if len(self.speedups) > 1 else None

    def to_json(self) -> dict[str, Any]:
        """For ``--json``; keys of ``pass_at`` and ``best_at`` are k."""
        return {
            "task": str(self.label),
            "trials": len(self.passed) + len(self.unjudged),
            "unjudged": list(self.unjudged),
            "passed": self.passed.count(True),
            "pass_at": {str(k): round(p, 6) for k, p in enumerate(self.pass_at, 1)},
            "best_at": {str(k): round(b, 6) for k, b in enumerate(self.best_at, 1)},
            "speedups": list(self.speedups),
            "mean": self.mean,
            "spread": self.spread,
        }


def _best_at(speedups: Sequence[float]) -> tuple[float, ...]:
    ordered, total = sorted(speedups), len(speedups)
    return tuple(
        sum(comb(index, k - 1) * value for index, value in enumerate(ordered)) / comb(total, k)
        for k in range(1, total + 1)
    )


def summarise_trials(table: Iterable[TaskResult]) -> tuple[Trials, ...]:
    """One summary for each task that has several results."""
    groups: dict[Label, list[TaskResult]] = {}
    for result in table:
        groups.setdefault(result.label.in_trial(1), []).append(result)
    return tuple(_summary(label, trials) for label, trials in groups.items() if len(trials) > 1)


def render_trials(found: Sequence[Trials]) -> str:
    """A line for each task, below the table of all trials; then the unjudged trials."""
    if not found:
        return ""
    header = ("task", "trials", "passed", "pass@1", "best@1", "best@all", "mean", "spread")
    table = text_table([header, *map(_texts, found)])
    missing = [name for one in found for name in _unjudged(one)]
    named = [f"not judged, excluded from all figures: {', '.join(missing)}"] if missing else []
    return "\n".join([table, *named])


def _summary(label: Label, trials: Sequence[TaskResult]) -> Trials:
    judged = [trial for trial in trials if trial.judged]
    gains = [gain(trial) for trial in judged] if any(trial.scored for trial in judged) else []
    ends = tuple(one.ends for one in gains if one.ends)
    return Trials(
        label,
        tuple(all(gate.passed for gate in trial.deciding) for trial in judged),
        tuple(one.middle for one in gains),
        tuple(trial.trial for trial in trials if not trial.judged),
        ends if len(ends) == len(gains) else (),
    )


def _unjudged(one: Trials) -> list[str]:
    """The unjudged trials by name; a task without judged trials is named once."""
    if one.passed:
        return [one.label.in_trial(number).short for number in one.unjudged]
    return [f"{one.label.short} (all {len(one.unjudged)} trials)"]


def _texts(one: Trials) -> tuple[str, ...]:
    shown = ["-"] * 4
    if one.speedups:  # the best of one trial is expected to be their mean
        mean, best = str(one.shown(statistics.fmean)), str(one.shown(max))
        shown = [mean, best, mean, "-" if one.spread is None else f"{one.spread:.2f}x"]
    judged, total = len(one.passed), len(one.passed) + len(one.unjudged)
    return (
        one.label.short,
        f"{judged} of {total}" if one.unjudged else str(total),
        str(one.passed.count(True)),
        f"{one.pass_at[0]:.2f}" if one.passed else "-",
        *shown,
    )
