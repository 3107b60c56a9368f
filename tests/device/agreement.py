"""Do repeated runs of one pair agree, and do processes that want one device wait for each other?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from workplace import PLATFORM, Ran, Workplace, finish

SHARED = "//tasks/hip2hip/gemm:gemm.perf"
ALONE = "//tasks/hip2hip/layernorm:layernorm.perf"


def measure(workplace: Workplace, devices: int) -> dict[str, Any]:
    """Time two pairs again, by three processes at once.

    Two processes time the same pair on the first device, where each has to wait for the other: a
    device that somebody else uses while times are taken is an error of the machine. The third
    times another pair on the second device where there is one.
    """
    second = f"--devices={min(1, devices - 1)}"
    if not all(_cases(workplace, label) for label in (SHARED, ALONE)):
        workplace.test(SHARED, ALONE)
    readings: dict[str, list[Mapping[str, Any]]] = {SHARED: [_cases(workplace, SHARED)]}
    readings[ALONE] = [_cases(workplace, ALONE)]
    started = time.monotonic()
    flags = ("--nocache_test_results", "--json", PLATFORM)
    pair = [workplace.start("test", SHARED, *flags, "--devices=0") for _ in range(2)]
    ran = workplace.kabuild("test", ALONE, *flags, second)
    readings[ALONE].append(_cases(workplace, ALONE) if ran.code == 0 else {})
    left = max(1.0, workplace.deadline - time.monotonic())
    ended = [finish(process, started, left) for process in pair]
    readings[SHARED].append(_cases(workplace, SHARED))
    return {
        "agreement": {label: _spread(found) for label, found in readings.items()},
        "two_processes_on_one_device": [_told(ran) for ran in ended],
    }


def _cases(workplace: Workplace, label: str) -> Mapping[str, Any]:
    """What the last run said, by config."""
    verdict = workplace.read(label.removeprefix("//"), "verdict.json")
    return {case["config"]: case for case in verdict.get("cases", ())}


def _spread(readings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By config: every reading, and how far the largest is above the smallest."""
    found: dict[str, Any] = {}
    configs = {name: None for reading in readings for name in reading}
    for config in configs:
        cases = [reading[config] for reading in readings if config in reading]
        found[config] = {
            name: {
                "readings": [case[name] for case in cases],
                "spread_percent": _percent([case[name] for case in cases]),
            }
            for name in ("candidate_ns", "baseline_ns", "speedup")
        }
    return found


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
