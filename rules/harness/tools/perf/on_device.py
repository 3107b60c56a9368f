"""What timing on a GPU needs besides: its own defaults, and PyTorch at its strongest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from base.program import Config
from base.spec import Spec
from truth.judge import Judge
from truth.oracle import TaskFault

from perf.measure import Meter, Plan, Round

DEFAULTS: Mapping[str, Any] = {
    "memory_bytes": 8 << 30,
    "max_slots": 256,
    "max_processes": 5,
    "clock_ms": 1.0,  # nobody sleeps while a batch runs, but hosts have other guests
    "budget_seconds": 20.0,
    "readings": 4,  # a host's hiccup is as long as many batches
}
PILOT_SLOTS = 8  # one call alone would be timed by what launching it costs
EAGER = "eager"
COUNTED = ("", "max-autotune-no-cudagraphs")
RECORDED = ("max-autotune",)  # copies its inputs into its graphs: shown, and beaten by nobody
_LINES = 4  # of why a mode cannot be had
_FASTEST_MEMORY = 3.0  # caches are faster than the memory behind them
_MOST_OPERATIONS = 1 << 15  # of a multiprocessor in a cycle: sparse 8-bit matrices, twice


def round_of(
    meter: Meter,
    number: int,
    plans: Sequence[Plan],
    samples: int,
    fit: Callable[[Sequence[Plan]], bool],
) -> Round:
    """One round, with as many configs in a process as ``fit``: all of them often do not.

    A config that has a baseline of its own has processes of its own.
    """
    found: Round = {}
    for group in _groups(meter, plans, fit):
        found = {**found, **meter.round(number, group, samples)}
    return found


def _groups(
    meter: Meter, plans: Sequence[Plan], fit: Callable[[Sequence[Plan]], bool]
) -> list[list[Plan]]:
    groups: list[list[Plan]] = []
    for plan in plans:
        own = plan.config.name in meter.baselines
        if groups and not own and fit([*groups[-1], plan]):
            groups[-1].append(plan)
        else:
            groups.append([plan])
    return groups


def choose_baselines(meter: Meter, judge: Judge, spec: Spec) -> dict[str, dict[str, Any]]:
    """Have ``meter`` time against PyTorch at its strongest, config by config.

    PyTorch as it is competes with ``torch.compile``; the mode with graphs is looked at for the
    first config. Returns for each config what every mode took, in ns a call or why it cannot be
    had, and which is ``counted``.
    """
    if spec.baseline.abi != "torch":
        return {}
    first = spec.configs[0]
    return {
        config.name: _choose(meter, judge, config, RECORDED if config is first else ())
        for config in spec.configs
    }


def _choose(
    meter: Meter, judge: Judge, config: Config, recorded: tuple[str, ...]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    best = 0.0
    sides = {mode: judge.baseline.in_mode(mode) for mode in (*COUNTED, *recorded)}
    chosen = sides[""]
    for mode, side in sides.items():
        meter.baselines[config.name] = side
        try:
            samples = meter.pilot(Plan(config, PILOT_SLOTS), 2)
        except TaskFault as fault:
            if not mode:
                raise
            found[mode] = "; ".join(str(fault).splitlines()[:_LINES])
            continue
        found[mode or EAGER] = fastest = min(sample.per_call_ns for sample in samples)
        if mode in COUNTED and (not best or fastest < best):
            best, chosen = fastest, side
            found["counted"] = mode or EAGER
    meter.baselines[config.name] = chosen
    return found


def ceilings() -> tuple[float, float]:
    """Bytes and operations a second that the device of this process cannot exceed."""
    import torch

    known = torch.cuda.get_device_properties(0)
    memory_hz = float(getattr(known, "memory_clock_rate", 0)) * 1e3
    memory = 2.0 * memory_hz * float(getattr(known, "memory_bus_width", 0)) / 8
    clock_hz = float(getattr(known, "clock_rate", 0)) * 1e3
    return memory * _FASTEST_MEMORY, clock_hz * known.multi_processor_count * _MOST_OPERATIONS


def settled(policy: Mapping[str, Any]) -> dict[str, Any]:
    """The task's policy over these defaults, and no more tensors than the device holds."""
    from gpu import session

    merged = {**DEFAULTS, **policy}
    merged["memory_bytes"] = min(merged["memory_bytes"], session.memory_bytes() // 8)
    return merged
