"""Judges real candidates on the device of this machine and prints a table.

    python tests/device/judge_smoke.py --libraries DIR --runner FILE --out DIR [NAME...]

``DIR`` holds the compiled candidates, ``<name>.so``. Names choose among the cases.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from workplace import ROOT, Judged, Workplace, read_task

CHEATS = Path(__file__).parent / "cheats"
TASKS = ROOT / "tasks"
QUICK = {"call_seconds": 2.0}


@dataclass(frozen=True)
class Case:
    """One gate of one candidate."""

    name: str
    gate: str
    task: Path
    candidate: str
    baseline: str
    policy: tuple[tuple[str, Any], ...] = ()
    expected: str = "PASS"


def cases() -> Iterator[Case]:
    """Every case, the simple ones first."""
    softmax = TASKS / "hip2hip" / "softmax"
    rmsnorm = TASKS / "triton2triton" / "rmsnorm"
    gelu = TASKS / "torch2hip" / "gelu"
    for gate in ("correctness", "perf", "unseen"):
        yield Case(f"softmax.{gate}", gate, softmax, "softmax_expert", "softmax")
    for path in sorted(CHEATS.glob("*.hip")):
        text = next(x for x in path.read_text().splitlines() if x.startswith("// verdict: "))
        gate, expected = text.removeprefix("// verdict: ").split(" ", 1)
        policy = tuple(QUICK.items()) if gate != "perf" else ()
        yield Case(path.stem, gate, CHEATS, path.stem, "honest", policy, expected)
    for gate in ("correctness", "perf", "unseen"):
        own = rmsnorm / "rmsnorm.py"
        expert = rmsnorm / "solutions" / "expert" / "rmsnorm.py"
        yield Case(f"rmsnorm.{gate}", gate, rmsnorm, str(expert), str(own))
    for gate in ("correctness", "perf"):
        yield Case(f"gelu.{gate}", gate, gelu, "gelu_expert", str(gelu / "reference.py"))


def program(name: str, entry: str, libraries: Path) -> dict[str, str]:
    """A candidate or baseline by its file, or by the name of its library."""
    if name.endswith("reference.py"):
        return {"abi": "torch", "path": name, "entry": "baseline"}
    if name.endswith(".py"):
        return {"abi": "python", "path": name, "entry": entry}
    return {"abi": "hip", "path": str(libraries / f"{name}.so"), "entry": entry}


def main() -> int:
    """Run the chosen cases; 1 where one is judged otherwise than expected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", type=Path, required=True)
    parser.add_argument("--runner", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    workplace = Workplace(Path(tempfile.mkdtemp()) / "work", options.runner)
    results, wrong = {}, 0
    for case in cases():
        if options.names and not any(name in case.name for name in options.names):
            continue
        task = read_task(case.task)
        entry, libraries = task["entry"], options.libraries.absolute()
        judged = workplace.judge(
            case.gate,
            task,
            program(case.candidate, entry, libraries),
            program(case.baseline, entry, libraries),
            **dict(case.policy),
        )
        right = judged.summary.startswith(case.expected.partition(",")[0])
        wrong += not right
        mark = "ok  " if right else "BAD "
        print(f"{mark}{case.name:28} {judged.seconds:6.1f} s  {judged.summary[:400]}", flush=True)
        results[case.name] = _record(judged)
    (options.out / "judge_smoke.json").write_text(json.dumps(results, indent=1))
    print(f"{len(results) - wrong} of {len(results)} as expected")
    return 1 if wrong else 0


def _record(judged: Judged) -> dict[str, Any]:
    return {
        "seconds": round(judged.seconds, 2),
        "said": judged.said[-2000:],
        "verdict": judged.verdict,
        "samples": judged.samples,
    }


if __name__ == "__main__":
    sys.exit(main())
