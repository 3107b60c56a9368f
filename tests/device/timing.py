"""What the gate ``perf`` of a task has measured, and how."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from workplace import Workplace


def timing(workplace: Workplace, label: str) -> dict[str, Any]:
    """By what a build has left of a task; empty where it has not got so far."""
    package, name = label.removeprefix("//"), label.rpartition("/")[2]
    verdict = workplace.read(f"{package}:{name}.perf", "verdict.json")
    samples = workplace.read(f"{package}:{name}.perf", "samples.json")
    return {
        "configs": verdict.get("cases", []),
        "stop": verdict.get("stop", {}),
        "baselines": samples.get("baselines", {}),
        "as_one_graph_ns": samples.get("graphs", {}),
        "device": samples.get("device", []),
        "phases": samples.get("seconds", {}),
        "processes_ns": {
            config: {side: [_per_call(p) for p in found] for side, found in sides.items()}
            for config, sides in samples.get("configs", {}).items()
        },
    }


def _per_call(process: list[Mapping[str, Any]]) -> float:
    """The median of one process, in ns a call."""
    calls = [float(sample["reported_ns"]) / sample["slots"] for sample in process]
    return float(round(statistics.median(calls), 1))
