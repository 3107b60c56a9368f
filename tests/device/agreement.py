"""Do repeated runs of one pair agree, and do processes that want one device wait for each other?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from workplace import PLATFORM, Ran, Workplace, finish

SHARED = "//tasks/hip2hip/gemm:gemm.perf"
AGAIN = 2
"""How often all tasks are timed anew, after what the stage ``suite`` has left."""

_AGENT = "--agent=expert"
_ANEW = ("--gates=perf", "--nocache_test_results")
_TIMES = ("candidate_ns", "baseline_ns", "speedup")

Cases = Mapping[str, Mapping[str, Any]]
"""By task and config, what one run said."""


def measure(workplace: Workplace, tasks: Sequence[str]) -> dict[str, Any]:
    """Time the experts of ``tasks`` again, then one pair by two processes at once.

    These have to wait for each other: a device that somebody else uses while times are taken is an
    error of the machine.
    """
    started = time.monotonic()
    pair = [
        workplace.start("test", SHARED, _AGENT, *_ANEW[1:], "--json", PLATFORM, "--devices=0")
        for _ in range(2)
    ]
    left = max(1.0, workplace.deadline - started)
    together = [_told(finish(process, started, left)) for process in pair]
    readings = [_cases(workplace, workplace.test(*tasks, _AGENT, "--gates=perf"))]
    readings.extend(
        _cases(workplace, workplace.test(*tasks, _AGENT, *_ANEW))
        for _ in range(AGAIN)
        if time.monotonic() < workplace.deadline
    )
    return {"agreement": spreads(readings), "two_processes_on_one_device": together}


def _cases(workplace: Workplace, ran: Ran) -> Cases:
    """The times of one run; what it did not come to is not there."""
    found: dict[str, Mapping[str, Any]] = {}
    for entry in ran.json["targets"]:
        if entry["gate"] != "perf" or entry["verdict"] != "PASS":
            continue
        package, _, name = entry["task"].removeprefix("//").partition(":")
        verdict = workplace.read(f"{package}:{name}.perf", "verdict.json")
        for case in verdict.get("cases", ()):
            found[f"{entry['task']} {case['config']}"] = case
    return found


def spreads(readings: Sequence[Cases]) -> dict[str, Any]:
    """By task and config: every reading, and how far the largest is above the smallest."""
    names = {name: None for reading in readings for name in reading}
    return {name: _spread([r[name] for r in readings if name in r]) for name in names}


def _spread(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    values = {name: [case[name] for case in cases] for name in _TIMES}
    lows, highs = ([case[end] for case in cases] for end in ("low", "high"))
    return {
        **{
            name: {"readings": read, "spread_percent": _percent(read)}
            for name, read in values.items()
        },
        "intervals_overlap": max(lows) <= min(highs),
    }


def _percent(values: Sequence[float]) -> float:
    return round(100 * (max(values) / min(values) - 1), 2)


def _told(ran: Ran) -> dict[str, Any]:
    perf = [entry for entry in ran.json["targets"] if entry["gate"] == "perf"]
    return {
        "exit_code": ran.code,
        "seconds": round(ran.seconds, 2),
        "verdicts": [entry["verdict"] for entry in perf],
        "summaries": [entry["summary"] for entry in perf],
        "perf_seconds": [entry["seconds"] for entry in perf],
        "said": [line for line in ran.err.splitlines() if "wait" in line],
    }
