"""Fits the time that is made of counts (``analyze/fitted.py``) to calls that were timed."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "rules/harness/tools"))

from analyze.fitted import H100, TERMS, Fitted, terms

_STEPS = 500
_NEAR = 1.02
_SUMMED = ("variants", "timed_by_model", "timed_by_chance")
_PRIOR = 1e-5  # keeps coefficients finite that no call determines

Row = Mapping[str, Any]


def fit(calls: Sequence[Row], ns: Sequence[float]) -> Fitted:
    """The model that is least wrong on a logarithmic scale; no coefficient is negative."""
    import torch

    rows = [terms(call) for call in calls]
    most = {name: max((row[name] for row in rows), default=0.0) or 1.0 for name in TERMS}
    given = torch.tensor([[row[name] / most[name] for name in TERMS] for row in rows]).double()
    taken = torch.tensor(ns).double().log()
    middle = math.log(statistics.median(ns) / len(TERMS))
    logs = torch.full((len(TERMS),), middle).double().requires_grad_()
    search: Any = torch.optim.LBFGS([logs], max_iter=_STEPS, line_search_fn="strong_wolfe")

    def wrong() -> Any:
        search.zero_grad()
        apart = (given @ logs.exp()).clamp(min=1.0).log() - taken
        loss = torch.nn.functional.huber_loss(apart, torch.zeros_like(apart), delta=0.5)
        loss = loss + _PRIOR * (logs - middle).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    search.step(wrong)
    values = logs.detach().exp().tolist()
    each = {name: value / most[name] for name, value in zip(TERMS, values, strict=True)}
    return Fitted(H100, each)


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """The correlation of ranks, of which equal values share one; 0 where one side is constant."""
    ranks = [_ranks(one), _ranks(other)]
    try:
        return statistics.correlation(*ranks)
    except statistics.StatisticsError:
        return 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for place, value in enumerate(order):
        first.setdefault(value, place)
        last[value] = place
    return [(first[value] + last[value]) / 2 for value in values]


def halves(tasks: Sequence[str]) -> tuple[set[str], set[str]]:
    """Every other task, by name, and the rest."""
    names = sorted(set(tasks))
    return set(names[::2]), set(names[1::2])


def tested(rows: Sequence[Row]) -> dict[str, Any]:
    """How the model ranks calls of tasks that it was not fitted on, and what timing it spares.

    ``rows`` have ``task``, ``call`` and ``ns``. Each half is tested by a model of the other.
    ``tasks`` has the correlation within each task with at least four variants, how much slower the
    best by the model is than the fastest, and how many have to be timed until one is within 2 % of
    that: in the model's order, and by chance. ``within_tasks`` has medians and sums of that.
    ``fitted`` is the model of all, which ``peaks.toml`` has.
    """
    found: dict[str, Any] = {"halves": [], "modelled": {}}
    one, other = halves([row["task"] for row in rows])
    for fitted, unknown in ((one, other), (other, one)):
        known = [row for row in rows if row["task"] in fitted]
        model = fit([row["call"] for row in known], [row["ns"] for row in known])
        test = [row for row in rows if row["task"] in unknown]
        modelled = [model.of(row["call"]) for row in test]
        found["halves"].append(
            {
                "fitted_on": len(known),
                "tested_on": len(test),
                "spearman": round(spearman(modelled, [row["ns"] for row in test]), 4),
                "coefficients": model.ns,
            }
        )
        found["modelled"] |= {
            row["name"]: round(value, 1) for row, value in zip(test, modelled, strict=True)
        }
    all_of_them = fit([row["call"] for row in rows], [row["ns"] for row in rows])
    found["fitted"] = {name: float(f"{value:.4g}") for name, value in all_of_them.ns.items()}
    found["tasks"] = within(rows, found["modelled"])
    found["within_tasks"] = summed(found["tasks"])
    return found


def summed(tasks: Mapping[str, Row]) -> dict[str, float]:
    """Medians and sums of what ``within`` finds."""
    return {
        what: round(statistics.median(task[what] for task in tasks.values()), 4)
        for what in ("spearman", "best_is_slower_by", "slowest_over_fastest")
        if tasks
    } | {what: round(sum(task[what] for task in tasks.values()), 1) for what in _SUMMED}


def within(rows: Sequence[Row], modelled: Mapping[str, float]) -> dict[str, Any]:
    """By task with at least four variants, how times by name order them; see ``tested``."""
    found = {}
    for task in sorted({row["task"] for row in rows}):
        own = [row for row in rows if row["task"] == task]
        if len(own) < 4:
            continue
        by_model: Callable[[Row], float] = lambda row: modelled[row["name"]]  # noqa: E731
        fastest = min(row["ns"] for row in own)
        near = [row["ns"] <= fastest * _NEAR for row in sorted(own, key=by_model)]
        found[task] = {
            "variants": len(own),
            "spearman": round(spearman([by_model(row) for row in own], [r["ns"] for r in own]), 4),
            "best_is_slower_by": round(min(own, key=by_model)["ns"] / fastest - 1, 4),
            "slowest_over_fastest": round(max(row["ns"] for row in own) / fastest, 3),
            "timed_by_model": 1 + near.index(True),
            "timed_by_chance": (len(own) + 1) / (sum(near) + 1),
        }
    return found
