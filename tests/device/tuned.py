"""How far the offline agent ``tuner`` comes with the tunables that kernels declare."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workplace import Workplace

SECONDS = 60
_AGENTS = "toolchains/agents/BUILD.toml"


def measure(
    workplace: Workplace, seconds: int = SECONDS, only: Sequence[str] = ()
) -> dict[str, Any]:
    """Have the tuner work for so many seconds at each task, and judge what it hands in.

    ``only`` names the tasks to take where not all are. A task is beaten where the mean speedup is
    above 1 and half of the configs are surely faster.
    """
    _give(workplace.root / _AGENTS, seconds)
    labels = [label for label in tasks(workplace.root) if not only or label in only]
    gates = "--gates=compile,correctness,perf"
    ran = workplace.test(*labels, "--agent=tuner", gates)
    found = {label: _outcome(workplace, label, ran.json["targets"]) for label in labels}
    return {
        "seconds_each": seconds,
        "seconds": round(ran.seconds, 2),
        "exit_code": ran.code,
        "said": ran.err.splitlines()[-30:],
        "beaten": sum(row["beaten"] for row in found.values()),
        "of": len(found),
        "tasks": found,
    }


def tasks(root: Path) -> list[str]:
    """Those whose kernel declares tunables."""
    found = []
    for file in sorted((root / "tasks").glob("*/*/BUILD.toml")):
        (task,) = next(iter(tomllib.loads(file.read_text()).values()))
        if "kabuild:tune" in (file.parent / task["kernel"]).read_text():
            found.append(f"//{file.parent.relative_to(root)}")
    return found


def _give(agents: Path, seconds: int) -> None:
    """The tuner's wall time, in the copy."""
    head, name, rest = agents.read_text().partition('name    = "tuner"')
    agents.write_text(head + name + re.sub(r"seconds = \d+", f"seconds = {seconds}", rest, count=1))


def _outcome(workplace: Workplace, label: str, targets: Sequence[Any]) -> dict[str, Any]:
    mine = {e["gate"]: e for e in targets if e["task"].partition(":")[0] == label}
    package, name = label.removeprefix("//"), label.rpartition("/")[2]
    timed = mine.get("perf", {}).get("verdict") == "PASS"
    verdict = workplace.read(f"{package}:{name}.perf", "verdict.json") if timed else {}
    cases = verdict.get("cases", [])
    faster = sum(bool(case["faster"]) for case in cases)
    speedup = verdict.get("mean_speedup", 0.0)
    return {
        "verdicts": {gate: f"{e['verdict']} {e['reason']}".strip() for gate, e in mine.items()},
        "speedup": speedup,
        "surely_faster": faster,
        "configs": cases,
        "beaten": bool(cases) and speedup > 1.0 and 2 * faster >= len(cases),
    }
