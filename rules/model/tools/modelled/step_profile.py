"""Where the time of a training step goes: forward, backward, optimiser, and their operators."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, profile, record_function

from modelled.clocks import Clock
from modelled.training import optimiser_of
from modelled.user_model import UserModel

_RUNS = 7
PHASES = ("forward", "backward", "optimiser")
_MARK = "kabuild "


def step_profile(model: UserModel, clock: Clock) -> dict[str, Any]:
    """The phases of a training step, and on a processor their operators, the slowest first.

    Seconds are the lower quartile of seven steps, of a copy of the module.
    """
    module = copy.deepcopy(model.module)
    optimiser = optimiser_of(model.code, module)
    times: dict[str, list[float]] = {phase: [] for phase in PHASES}
    arguments = model.draw(0)

    def step(measure: Callable[[str, Callable[[], Any]], Any]) -> None:
        optimiser.zero_grad(set_to_none=True)
        losses: list[Any] = []
        measure("forward", lambda: losses.append(model.code.loss(module(*arguments), *arguments)))
        measure("backward", losses[0].backward)
        measure("optimiser", optimiser.step)

    def timed(phase: str, call: Callable[[], Any]) -> None:
        times[phase].append(clock.whole(call))

    def marked(phase: str, call: Callable[[], Any]) -> None:
        with record_function(f"{_MARK}{phase}"):
            call()

    step(lambda _, call: call())
    runs = []
    for number in range(_RUNS):
        arguments = model.draw(number)
        step(timed)
        if model.device == "cpu":
            with profile(activities=[ProfilerActivity.CPU]) as profiler:
                step(marked)
            runs.append(_by_operator(profiler))
    taken = {phase: _quartile(readings) for phase, readings in times.items()}
    total = sum(taken.values())
    return {
        "seconds": total,
        "phases": [
            {"name": phase, "seconds": seconds, "share": seconds / total}
            for phase, seconds in taken.items()
        ],
        "operators": _operators(runs),
    }


def _by_operator(profiler: Any) -> dict[tuple[str, str], list[float]]:
    """Seconds of each call, by phase and operator; what an operator calls is its own."""
    found: dict[tuple[str, str], list[float]] = {}
    for event in profiler.events():
        if not event.name.startswith("aten::"):
            continue
        parent = event.cpu_parent
        while parent is not None and not parent.name.startswith(("aten::", _MARK)):
            parent = parent.cpu_parent
        if parent is not None and parent.name.startswith(_MARK):
            key = parent.name.removeprefix(_MARK), event.name.removeprefix("aten::")
            found.setdefault(key, []).append(event.cpu_time_total / 1e6)
    return found


def _operators(runs: list[dict[tuple[str, str], list[float]]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "phase": phase,
            "name": name,
            "calls": len(calls),
            "seconds": _quartile([sum(run.get((phase, name), [0.0])) for run in runs]),
        }
        for (phase, name), calls in (runs[0] if runs else {}).items()
    ]
    total = sum(row["seconds"] for row in rows) or 1.0
    rows = [{**row, "share": row["seconds"] / total} for row in rows]
    return sorted(rows, key=lambda row: (-row["seconds"], row["phase"], row["name"]))


def _quartile(readings: list[float]) -> float:
    quartile: float = statistics.quantiles(readings, n=4)[0]
    return quartile
