"""Tasks of other benchmarks, judged on the device: each original against itself.

What is given is a workspace that has imported them, with its checkouts. Its lock is taken as it is,
so that no task is captured again. A run that is cut off has judged some tasks in full. Tasks are
labels or patterns; ``@kernelbench//level1/19_ReLU:19_ReLU.proof`` proves one instead.

The directory ``originals`` keeps what runs on several machines have left. A task counts once two
of them agree; this prints, of the labels that are read, those that do not count yet:

    kabuild query @kernelbench//level1/... | python tests/device/originals.py
"""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from description import describe
from leases import FIGURES
from timing import timing
from workplace import Ran, Workplace

KEPT = Path(__file__).parent / "originals"
ENOUGH = 2
"""The machines on which a task has to have passed."""

_LAST = "score"
_UNKNOWN = "CANCELLED"
_ALWAYS = ("verdict", "seconds")
_WHY = ("reason", "summary")
_NARROW = 0.01
"""The half-width of an interval from which on the times of its processes are kept, too."""


def adopt(workplace: Workplace, workspace: Path) -> None:
    """Have the copy know the repositories that ``workspace`` has imported."""
    declared = tomllib.loads((workspace / "WORKSPACE.toml").read_text()).get("repository", [])
    if not declared:
        raise ValueError(f"{workspace}/WORKSPACE.toml has no [[repository]]: import one there")
    shutil.copytree(workspace / "imports", workplace.root / "imports", dirs_exist_ok=True)
    with (workplace.root / "WORKSPACE.toml").open("a") as own:
        for repository in declared:
            path = (workspace / repository["path"]).resolve()
            own.write("\n[[repository]]\n")
            for key, value in {**repository, "path": str(path)}.items():
                own.write(f"{key} = {json.dumps(value)}\n")


def judge(workplace: Workplace, tasks: Sequence[str], gates: str) -> dict[str, Any]:
    """Judge the originals of ``tasks``; ``gates`` as for ``--gates``, empty for all."""
    chosen = [f"--gates={gates}"] if gates else []
    return found(workplace, workplace.test(*tasks, "--agent=none", *chosen))


def found(workplace: Workplace, ran: Ran) -> dict[str, Any]:
    """By task and gate, the verdicts; and what perf has measured."""
    rows: dict[str, Any] = {}
    for entry in ran.json["targets"]:
        if entry["verdict"] == _UNKNOWN:
            continue
        label = entry["task"].partition(":")[0]
        row = rows.setdefault(label, {"gates": {}})
        kept = _ALWAYS if _passes(entry) else _ALWAYS + _WHY
        row["gates"][entry["gate"]] = {key: entry[key] for key in kept}
        if not _passes(entry) and (detail := _detail(workplace, label, entry["gate"])):
            row["gates"][entry["gate"]]["detail"] = detail
        if entry["gate"] == "perf" and _passes(entry):
            row.update(_measured(workplace, label))
        if entry["gate"] == "proof":
            target = f"{label}:{label.rpartition('/')[2]}.proof"
            row["findings"] = workplace.read(target, "verdict.json").get("findings", [])
    return {
        "machine": describe(),
        "seconds": round(ran.seconds, 2),
        "exit_code": ran.code,
        "said": ran.err.splitlines()[-20:],
        "tasks": rows,
    }


def _detail(workplace: Workplace, label: str, gate: str) -> str:
    """What a gate's own verdict says; empty if there is none."""
    target = f"{label}:{label.rpartition('/')[2]}.{gate}"
    return str(workplace.read(target, "verdict.json").get("detail", ""))


def _measured(workplace: Workplace, label: str) -> dict[str, Any]:
    found = timing(workplace, label)
    cases = [_case(case, found["processes_ns"]) for case in found["configs"]]
    return {"configs": cases, "phases": found["phases"]}


def _case(case: Mapping[str, Any], processes: Mapping[str, Any]) -> dict[str, Any]:
    made = {"config": case["config"], **{name: case[name] for name in FIGURES}}
    if case["high"] - case["low"] > 2 * _NARROW:
        made["processes_ns"] = processes.get(case["config"], {})
    return made


def table(found: Mapping[str, Any]) -> list[str]:
    """A line for each task: its gates with their seconds, its speedup, or why it fails."""
    return [f"{label} {_line(row)}" for label, row in sorted(found["tasks"].items())]


def _line(row: Mapping[str, Any]) -> str:
    gates = row["gates"]
    passed = [f"{name} {gate['seconds']:.1f}" for name, gate in gates.items() if _passes(gate)]
    speedups = [f"{case['speedup']:.3f}x" for case in row.get("configs", [])]
    kinds = [finding["kind"] for finding in row.get("findings", [])]
    wrong = [
        f"{name} {gate['verdict']} {gate['reason']}: {gate['summary']:.200}"
        for name, gate in gates.items()
        if not _passes(gate)
    ]
    return ", ".join(passed + speedups[:1] + kinds + wrong[:1])


def _passes(gate: Mapping[str, Any]) -> bool:
    return bool(gate["verdict"] == "PASS")


def passed(runs: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """On how many machines each task has passed all gates."""
    return Counter(
        label
        for run in runs
        for label, row in run["tasks"].items()
        if _passes(row["gates"].get(_LAST, {"verdict": ""}))
    )


def left(labels: Sequence[str], runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tasks that have not passed on enough machines, those that passed nowhere first."""
    known = passed(runs)
    found = {label.partition(":")[0] for label in labels}
    return sorted((one for one in found if known[one] < ENOUGH), key=lambda one: (known[one], one))


def main() -> None:
    """Print the tasks that do not count yet."""
    runs = [json.loads(file.read_bytes()) for file in sorted(KEPT.glob("*.json"))]
    print("\n".join(left(sys.stdin.read().split(), runs)))


if __name__ == "__main__":
    main()
