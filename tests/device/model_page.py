"""The page on models of programs: whole models with other kernels, and times made of counts."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from tables import table
from time_model import summed

Stages = Mapping[str, Any]
_NEAR = 0.02
_MANY = 6
PICTURE = "modelled.svg"


def models(stages: Stages) -> str:
    """What Amdahl's law predicted for whole models, and what was measured; a row for each run."""
    rows, parts = [], []
    for name, runs in sorted(stages["model"].items()):
        for run in runs:
            found = run["verify"]
            speedups = {variant["name"]: variant for variant in found["variants"]}
            rows.append(
                [
                    name,
                    f"{found['predicted']:.3f}x",
                    f"{found['measured']:.3f}x",
                    f"{100 * found['difference']:+.1f} %",
                    *(_said(speedups[one]["speedup"]) for one in ("all", "none")),
                    _said(speedups["all"]["over_compiled"]),
                ]
            )
        last = runs[-1]["verify"]["parts"]
        told = ", ".join(f"`{p['name']}` {p['share']:.1%} at {p['speedup']:.2f}x" for p in last)
        sizes = ", ".join(f"{key} {value}" for key, value in sorted(runs[-1]["sizes"].items()))
        parts.append(f"- {name} ({sizes}): {told}")
    head = (
        *("model", "predicted", "all kernels over none", "prediction is off by"),
        *("all over eager", "none over eager", "all over torch.compile"),
    )
    said = (
        "`kabuild model profile`, `extract` and `verify` of examples of `tasks/models`, for "
        "inference, with kernels of `tests/device/model`. Predicted is the speedup of the model's "
        "operators by their shares and the kernels' own speedups. A row is a run; each had a "
        "machine of its own. Intervals are of 95 %. Below: the parts that have a kernel, with "
        "their shares and speedups in the last run."
    )
    return "\n\n".join(["## Whole models", said, table(head, rows), "\n".join(parts)])


def _said(speedup: Mapping[str, float] | None) -> str:
    if not speedup:
        return "-"
    ends = f"{speedup['speedup_low']:.3f} to {speedup['speedup_high']:.3f}"
    return f"{speedup['speedup']:.3f}x ({ends})"


def modelled(stages: Stages) -> str:
    """How well a time made of counts ranks variants of kernels."""
    found = stages["modelled"]
    ranking = found["ranking"]
    halves = " and ".join(f"{half['spearman']:.3f}" for half in ranking["halves"])
    within, tasks = ranking["within_tasks"], ranking["tasks"].values()
    slower = [task["best_is_slower_by"] for task in tasks]
    lines = [
        (
            f"{ranking['variants']} variants of kernels of {ranking['of_tasks']} HIP tasks: other "
            "numbers of threads, tiles and items; calls of at most "
            f"{found['elements']:,} elements a tensor"
        ),
        (
            f"Spearman's correlation of modelled and measured times: {halves}, each half of the "
            "tasks by a model that is fitted to the other half"
        ),
        (
            f"within a task of four variants or more, the medians: correlation "
            f"{within['spearman']:.2f}; the variant that the model calls fastest is slower than "
            f"the fastest by {100 * within['best_is_slower_by']:.1f} %; the slowest takes "
            f"{within['slowest_over_fastest']:.2f} times as long"
        ),
        (
            f"of these {len(slower)} tasks, that variant is within 2 % of the fastest in "
            f"{sum(one <= _NEAR for one in slower)}, and slower by "
            f"{100 * statistics.fmean(slower):.0f} % on average and by "
            f"{100 * max(slower):.0f} % at worst; the lowest correlation is "
            f"{min(task['spearman'] for task in tasks):.2f}"
        ),
    ]
    lines.append(
        f"to have one within 2 % of each task's fastest, {within['timed_by_model']} of their "
        f"{within['variants']} variants have to be timed in the model's order, and "
        f"{within['timed_by_chance']:.0f} in random order"
    )
    if again := found.get("again"):
        near = [abs(ns / found["timed"][name] - 1) <= _NEAR for name, ns in again.items()]
        lines.append(f"on a second machine, {sum(near)} of {len(near)} times are within 2 %")
    if "ordered" in stages:
        lines += _ordered(stages["ordered"])
    listed = "\n".join(f"- {line}" for line in lines)
    picture = f"![The modelled time of each variant over the measured one]({PICTURE})"
    return f"## Times made of counts\n\n{listed}\n\n{picture}"


def _ordered(found: Mapping[str, Any]) -> Iterator[str]:
    """What the model saves a search that times kernels on the visible configs."""
    ranking = found["ranking"]
    larger = {name: row for name, row in ranking["tasks"].items() if row["variants"] >= _MANY}
    both = ((ranking["within_tasks"], len(ranking["tasks"])), (summed(larger), len(larger)))
    (of_all, tasks), (of_larger, count) = both
    yield (
        f"on the visible configs themselves, by the same counts of small ones: "
        f"{of_all['timed_by_model']} of {of_all['variants']} variants of {tasks} tasks in the "
        f"model's order, {of_all['timed_by_chance']:.0f} in random order; of the {count} tasks "
        f"with {_MANY} variants or more, {of_larger['timed_by_model']} of "
        f"{of_larger['variants']}, and {of_larger['timed_by_chance']:.0f}. So much timing do "
        "`tuner` and `evolve` save, which time in this order"
    )
    if again := found.get("again"):
        near = [abs(ns / found["timed"][name] - 1) <= _NEAR for name, ns in again.items()]
        yield f"of these times, {sum(near)} of {len(near)} are within 2 % on a second machine"
