"""How far the offline agent ``tuner`` comes with the tunables that kernels declare."""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import bundles
from workplace import ROOT, Workplace

sys.path.insert(0, str(ROOT / "toolchains/agents"))

from tunables import describe, find

SECONDS = 120
BUNDLE = "tuner.kab"
_AGENTS = "toolchains/agents/BUILD.toml"
_JUDGING = 75.0
"""Seconds that compiling, judging and timing what is handed in takes, about."""

_PUBLISHING = 45.0
_VERDICTS = ("PASS", "FAIL", "REJECTED", "SKIPPED")


def limit(root: Path, only: Sequence[str], seconds: int, devices: int) -> float:
    """How many seconds it all may take: a device has one task at a time."""
    turns = batched(_chosen(root, only), max(1, devices))
    return len(turns) * (seconds + _JUDGING) + _PUBLISHING


def measure(
    workplace: Workplace,
    out: Path,
    seconds: int = SECONDS,
    only: Sequence[str] = (),
    devices: int = 1,
) -> dict[str, Any]:
    """Have the tuner work for so many seconds at each task, and judge what it hands in.

    ``only`` names the tasks to take where not all are. As many as there are ``devices`` are taken
    at a time, so that those before it are whole when time runs out; for which there is none left
    are not begun. A task is beaten where the mean over the configs of their intervals' lower ends
    is above 1. What was judged by all gates is published as ``out/tuner.kab``.
    """
    _give(workplace.root / _AGENTS, seconds)
    labels = _chosen(workplace.root, only)
    working = workplace.until(workplace.deadline - _PUBLISHING, workplace.flags)
    found: dict[str, Any] = {}
    calls = []
    for turn in batched(labels, max(1, devices)):
        if time.monotonic() + seconds > working.deadline:
            break
        ran = working.test(*turn, "--agent=tuner", timeout=math.inf)
        found |= {label: outcome(workplace, label, ran.json["targets"]) for label in turn}
        calls.append(ran)
    judged = [label for label, row in found.items() if row["judged"]]
    bundle = bundles.publish(workplace, judged, "tuner", out / BUNDLE) if judged else {}
    return {
        "seconds_each": seconds,
        "seconds": round(sum(ran.seconds for ran in calls), 2),
        "exit_code": max((ran.code for ran in calls), default=0),
        "said": [line for ran in calls for line in ran.err.splitlines()[-20:]],
        "beaten": sum(row["beaten"] for row in found.values()),
        "of": len(found),
        "not_begun": labels[len(found) :],
        "tasks": found,
        "bundle": {"file": BUNDLE, "tasks": judged, **bundle},
    }


def batched(labels: Sequence[str], size: int) -> list[Sequence[str]]:
    """The labels in turns of at most ``size``."""
    return [labels[start : start + size] for start in range(0, len(labels), size)]


def tasks(root: Path) -> list[str]:
    """Those whose kernel declares tunables."""
    return [
        f"//{file.parent.relative_to(root)}"
        for file in sorted((root / "tasks").glob("*/*/BUILD.toml"))
        if "kabuild:tune" in _kernel(file.parent).read_text()
    ]


def _chosen(root: Path, only: Sequence[str]) -> list[str]:
    return [label for label in tasks(root) if not only or label in only]


def _kernel(package: Path) -> Path:
    (task,) = next(iter(tomllib.loads((package / "BUILD.toml").read_text()).values()))
    return package / str(task["kernel"])


def _give(agents: Path, seconds: int) -> None:
    """The tuner's wall time, in the copy."""
    head, name, rest = agents.read_text().partition('name    = "tuner"')
    agents.write_text(head + name + re.sub(r"seconds = \d+", f"seconds = {seconds}", rest, count=1))


def outcome(workplace: Workplace, label: str, targets: Sequence[Any]) -> dict[str, Any]:
    """What came of one task, from the verdicts on all targets and what the build has left."""
    mine = {e["gate"]: e for e in targets if e["task"].partition(":")[0] == label}
    package, name = label.removeprefix("//"), label.rpartition("/")[2]
    timed = mine.get("perf", {}).get("verdict") == "PASS"
    verdict = workplace.read(f"{package}:{name}.perf", "verdict.json") if timed else {}
    cases = verdict.get("cases", [])
    worked = mine.get("compile", {}).get("verdict") in _VERDICTS
    return {
        "verdicts": {gate: f"{e['verdict']} {e['reason']}".strip() for gate, e in mine.items()},
        "judged": "score" in mine and all(e["verdict"] in _VERDICTS for e in mine.values()),
        "speedup": verdict.get("mean_speedup", 0.0),
        "surely_faster": sum(bool(case["faster"]) for case in cases),
        "configs": cases,
        "beaten": bool(cases) and statistics.fmean(case["low"] for case in cases) > 1.0,
        **(_work(workplace, package, name) if worked else {}),
    }


def _work(workplace: Workplace, package: str, name: str) -> dict[str, Any]:
    """What the agent itself did: how long, how many kernels it timed, and what it handed in.

    ``values`` are the tunables of what it handed in; empty where that is the kernel as it was.
    """
    target = f"{package}:{name}.agent"
    facts = workplace.read(target, "agent.json")
    calls = _lines(workplace.output(target, "calls.jsonl"))
    said = _lines(workplace.output(target, "transcript.jsonl"))
    kernel = _kernel(workplace.root / package).name
    text = workplace.output(target, f"solution/{kernel}").read_text()
    values = describe({tunable: tunable.default for tunable in find(text)})
    return {
        "state": facts["state"],
        "agent_seconds": facts["seconds"],
        "checks": facts["checks"],
        "check_seconds": [call["seconds"] for call in calls],
        "tried": len({call["kernel"] for call in calls if "perf" in call["gates"]}),
        "values": values if facts["solution"]["changed"] else "",
        "transcript": [entry["text"] for entry in said if entry["role"] == "assistant"],
    }


def _lines(path: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
