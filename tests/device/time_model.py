"""A time made of counts: what a call would take on a GPU, as far as counts on a CPU tell.

A call's time is a sum, over its launches, of what is done divided by how fast the GPU's parts do
it, plus what a launch, a trip to memory and a barrier take. The coefficients are fitted to calls
that were timed. It is there to rank variants of a kernel, and no score is made of it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analyze.sums import amounts, operations_of_warps

_STEPS = 500
_NEAR = 1.02
_SUMMED = ("variants", "timed_by_model", "timed_by_chance")
_PRIOR = 1e-5  # keeps coefficients finite that no call determines


@dataclass(frozen=True)
class Gpu:
    """How much of it there is: of one multiprocessor, but for their number."""

    processors: int = 132
    threads: int = 2048
    blocks: int = 32
    shared_bytes: int = 228 << 10


H100 = Gpu()
LAUNCH, MEMORY, CACHE = "launch", "memory", "cache"
TERMS = (
    LAUNCH,
    MEMORY,
    CACHE,
    *("sectors", "shared", "instructions", "special", "atomics", "trips", "barriers", "exchanges"),
)
"""What takes time: launches; bytes that move at least, and those that blocks ask of the cache they
share; then, for each multiprocessor that works, sectors, turns of banks, operations by kind, and
atomic operations; then, for each warp in a row, trips to memory, barriers, and exchanges. In the
last round of blocks all wait for the warp with the most trips."""

Row = Mapping[str, Any]


def terms(call: Row, gpu: Gpu = H100) -> dict[str, float]:
    """What a call does, of each of ``TERMS``, as ``variant_counts.sums`` tells it."""
    found = dict.fromkeys(TERMS, 0.0)
    for kernel in call["launches"]:
        for name, amount in _of_kernel(kernel, gpu).items():
            found[name] += amount
    return found


def _of_kernel(kernel: Row, gpu: Gpu) -> dict[str, float]:
    shapes = kernel["shapes"]
    launches = sum(shape["count"] for shape in shapes)
    warps = sum(shape["count"] * _blocks(shape) * _warps(shape) for shape in shapes) or 1
    rounds = max(_rounds(shape, gpu) for shape in shapes)
    accesses = kernel["accesses"]
    loads = sum(accesses.get(f"global {name} requests", 0) for name in ("load", "atomic")) / warps
    most = max(loads, *(shape["loads_most_of_thread"] or 0 for shape in shapes))
    read = sum(shape["sectors_read"] for shape in shapes)
    written = sum(shape["sectors_written"] for shape in shapes)
    by_blocks = sum(shape["sectors_read_by_blocks"] or shape["sectors_read"] for shape in shapes)
    done = amounts(kernel, gpu.processors)
    plain = operations_of_warps(done, "f64", "f32", "f16", "conversion", "integer")
    return {
        LAUNCH: done["launch"],
        MEMORY: float(read + written),
        CACHE: float(by_blocks + written),
        "sectors": done["sectors"],
        "shared": done["shared"],
        "instructions": plain + done["branches"],
        "special": operations_of_warps(done, "special"),
        "atomics": done["atomics"],
        "trips": (loads * (rounds - 1) + most) * launches,
        "barriers": kernel["barriers"] / warps * rounds * launches,
        "exchanges": sum(shape["exchanges"] for shape in shapes) / warps * rounds * launches,
    }


def _blocks(shape: Row) -> int:
    return int(math.prod(shape["grid"]))


def _warps(shape: Row) -> int:
    return -(-math.prod(shape["block"] or [32]) // 32)


def _rounds(shape: Row, gpu: Gpu) -> int:
    """How many blocks a multiprocessor runs one after the other, at least one."""
    threads = 32 * _warps(shape)
    at_once: int = min(
        gpu.blocks, gpu.threads // threads, gpu.shared_bytes // (shape["shared_bytes"] + 1024)
    )
    return max(1, -(-_blocks(shape) // (gpu.processors * max(1, at_once))))


@dataclass(frozen=True)
class TimeModel:
    """Nanoseconds of each of ``TERMS``."""

    coefficients: Mapping[str, float] = field(hash=False)

    def ns(self, call: Row) -> float:
        """The modelled time of a call."""
        found = terms(call)
        return sum(self.coefficients[name] * found[name] for name in TERMS)


def fit(calls: Sequence[Row], ns: Sequence[float]) -> TimeModel:
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
    return TimeModel({name: value / most[name] for name, value in zip(TERMS, values, strict=True)})


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
    """
    found: dict[str, Any] = {"halves": [], "modelled": {}}
    one, other = halves([row["task"] for row in rows])
    for fitted, unknown in ((one, other), (other, one)):
        known = [row for row in rows if row["task"] in fitted]
        model = fit([row["call"] for row in known], [row["ns"] for row in known])
        test = [row for row in rows if row["task"] in unknown]
        modelled = [model.ns(row["call"]) for row in test]
        found["halves"].append(
            {
                "fitted_on": len(known),
                "tested_on": len(test),
                "spearman": round(spearman(modelled, [row["ns"] for row in test]), 4),
                "coefficients": model.coefficients,
            }
        )
        found["modelled"] |= {
            row["name"]: round(value, 1) for row, value in zip(test, modelled, strict=True)
        }
    found["tasks"] = within = _within(rows, found["modelled"])
    found["within_tasks"] = {
        what: round(statistics.median(task[what] for task in within.values()), 4)
        for what in ("spearman", "best_is_slower_by", "slowest_over_fastest")
        if within
    } | {what: round(sum(task[what] for task in within.values()), 1) for what in _SUMMED}
    return found


def _within(rows: Sequence[Row], modelled: Mapping[str, float]) -> dict[str, Any]:
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
