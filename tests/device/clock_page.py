"""The page on the clock: how it agrees with others, and how machines agree with each other."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import leases
from tables import short, spread

Stages = Mapping[str, Any]
_SHORT_NS = 5000


def clock(stages: Stages) -> str:
    """How the gate's times agree with other clocks, and with themselves."""
    kernels = stages["durations"]
    cases = [
        (case, task, kernels.get(f"{label} {case['config']}"))
        for label, task in stages["suite"]["tasks"].items()
        for case in task["configs"]
    ]
    graphs = [
        _within(case["candidate_ns"], ns, profiled["kernels"] if profiled else 1)
        for case, task, profiled in cases
        if (ns := task["as_one_graph_ns"].get(case["config"], {}).get("candidate"))
    ]
    single = [
        (case, profiled["ns"])
        for case, _, profiled in cases
        if profiled and profiled["kernels"] == 1
    ]
    agree = [_within(case["candidate_ns"], ns, 1) for case, ns in single]
    longer = [case["candidate_ns"] / ns for case, ns in single]
    spreads = [
        spread(processes)
        for case, task, _ in cases
        if case["candidate_ns"] >= _SHORT_NS
        and (processes := task["processes_ns"].get(case["config"], {}).get("candidate"))
    ]
    half = [100 * math.log(case["high"] / case["low"]) / 2 for case, *_ in cases]
    lines = [
        f"within 3 % and 2 µs a launch of one CUDA graph of the same calls: {_of(graphs)} configs",
        (
            f"within 3 % and 2 µs of Nsight Compute's duration, where a call is one kernel: "
            f"{_of(agree)}. The gate's time is {min(longer):.2f} to {max(longer):.2f} of it"
        ),
        (
            f"processes of the expert within 1 % of each other, from 5 µs on: "
            f"{_of([spread <= 1 for spread in spreads])}; within 2 %: "
            f"{_of([spread <= 2 for spread in spreads])}"
        ),
        (
            f"intervals of at most ±1 %: {_of([width <= 1 for width in half])}; ±1.5 %: "
            f"{_of([width <= 1.5 for width in half])}. What machines differ by is part of each"
        ),
    ]
    return "## The clock\n\n" + "\n".join(f"- {line}" for line in lines)


def _within(gate_ns: float, other_ns: float, launches: int) -> bool:
    """The limits of the clock: 3 %, and 2 µs for each launch of a call."""
    return abs(gate_ns - other_ns) <= 0.03 * other_ns + 2000 * launches


def _of(passed: Sequence[bool]) -> str:
    return f"{sum(passed)} of {len(passed)}"


def between_machines(stages: Stages) -> str:
    """How far runs of the suite on several machines are apart."""
    runs_of = stages["leases"]
    found = list(leases.pairs(runs_of))
    overlapping = [leases.overlap(one, other) for _, one, other in found]
    speedups = [leases.apart(one, other, "speedup") for _, one, other in found]
    times = [leases.apart(one, other, "candidate_ns") for _, one, other in found]
    name, *two = max(found, key=lambda pair: leases.apart(pair[1], pair[2], "speedup"))
    lines = [
        f"intervals of a speedup that overlap: {_of(overlapping)} pairs",
        (
            f"speedups within 2 %: {_of([share <= leases.CLOSE for share in speedups])}; the "
            f"median pair is {100 * statistics.median(speedups):.2f} % apart"
        ),
        (
            f"the experts' times within 2 %: {_of([share <= leases.CLOSE for share in times])}; "
            f"the median pair is {100 * statistics.median(times):.2f} % apart"
        ),
        (
            f"furthest apart: {short(name.partition(' ')[0])}, {name.partition(' ')[2]}: "
            f"{two[0]['speedup']:.3f} and {two[1]['speedup']:.3f}"
        ),
    ]
    head = (
        f"The suite on {len(runs_of)} machines ({', '.join(sorted(runs_of))}), each two compared:"
    )
    return "\n\n".join(["## Machines", head, "\n".join(f"- {line}" for line in lines)])
