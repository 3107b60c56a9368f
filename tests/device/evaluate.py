"""Runs the stages of ``run_all.sh``, each of which leaves one JSON file."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import agreement
import cheat_suite
import roofline
from description import describe
from workplace import PLATFORM, Ran, Workplace

HERE = Path(__file__).parent
TASKS = "//tasks/..."


class Evaluation:
    """The stages, in the order in which they need each other."""

    def __init__(self, out: Path, folder: Path, cheats: Sequence[str]) -> None:
        self._out = out
        self._folder = folder
        self._made: Workplace | None = None
        self.stages: Mapping[str, Callable[[], Any]] = {
            "machine": describe,
            "build": self.build,
            "side_by_side": self.side_by_side,
            "suite": self.suite,
            "cheats": lambda: cheat_suite.judge(self._workplace, cheats),
            "agreement": lambda: agreement.measure(self._workplace, len(describe()["devices"])),
            "roofline": self.roofline,
        }

    @property
    def _workplace(self) -> Workplace:
        if self._made is None:
            self._made = Workplace.make(self._folder)
        return self._made

    def build(self) -> Any:
        """Compile every task's expert: seconds by task, and what the compilers say of kernels."""
        ran = self._test("--gates=compile")
        return {"seconds": round(ran.seconds, 2), "gates": _gates(ran)}

    def side_by_side(self) -> Any:
        """In a process of its own, alone on the machine."""
        file = self._out / "side_by_side.json"
        script = [sys.executable, str(HERE / "side_by_side.py")]
        arguments = ["--experts", str(self._workplace.root), "--out", str(file)]
        done = subprocess.run([*script, *arguments], check=False)
        found = json.loads(file.read_bytes()) if file.exists() else {}
        return {**found, "exit_code": done.returncode}

    def suite(self) -> Any:
        """All tasks with their experts, then again from the cache."""
        cold = self._test()
        warm = self._test()
        rows: dict[str, Any] = {}
        for entry in cold.json["targets"]:
            label = entry["task"].partition(":")[0]
            row = rows.setdefault(label, {"gates": {}})
            row["gates"][entry["gate"]] = _gate(entry)
            row |= {key: entry[key] for key in ("speedup", "score") if entry[key] is not None}
        for label, row in rows.items():
            row.update(self._timing(label))
        return {
            "cold": {"seconds": round(cold.seconds, 2), "exit_code": cold.code},
            "cached": {"seconds": round(warm.seconds, 2), "exit_code": warm.code},
            "totals": cold.json.get("totals"),
            "said": cold.err.splitlines()[-60:],
            "tasks": rows,
        }

    def roofline(self) -> Any:
        """From what the stages ``suite`` and ``side_by_side`` have left."""
        suite, limits = (
            json.loads((self._out / f"{name}.json").read_bytes())
            for name in ("suite", "side_by_side")
        )
        return roofline.shares(self._workplace.root, suite["tasks"], limits["device"])

    def _test(self, *flags: str) -> Ran:
        return self._workplace.kabuild(
            "test", TASKS, PLATFORM, "--agent=expert", "--json", *flags, timeout=540.0
        )

    def _timing(self, label: str) -> dict[str, Any]:
        package, name = label.removeprefix("//"), label.rpartition("/")[2]
        verdict = self._workplace.read(f"{package}:{name}.perf", "verdict.json")
        samples = self._workplace.read(f"{package}:{name}.perf", "samples.json")
        return {
            "configs": verdict.get("cases", []),
            "baselines": samples.get("baselines", {}),
            "as_one_graph_ns": samples.get("graphs", {}),
            "device": samples.get("device", []),
            "processes_ns": {
                config: {side: [_per_call(p) for p in found] for side, found in sides.items()}
                for config, sides in samples.get("configs", {}).items()
            },
        }


def _per_call(process: list[Mapping[str, Any]]) -> float:
    """The median of one process, in ns a call."""
    calls = [float(sample["reported_ns"]) / sample["slots"] for sample in process]
    return float(round(statistics.median(calls), 1))


def _gates(ran: Ran) -> dict[str, Any]:
    return {f"{entry['task']} {entry['gate']}": _gate(entry) for entry in ran.json["targets"]}


def _gate(entry: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("verdict", "reason", "summary", "seconds", "hermetic")
    return {key: entry[key] for key in kept}


def main() -> int:
    """Run the chosen stages; 1 where one of them breaks off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("stages", nargs="*")
    parser.add_argument("--folder", type=Path, help="where the repository is copied to, and kept")
    parser.add_argument("--cheat", action="append", default=[], help="only those of this name")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        evaluation = Evaluation(options.out, options.folder or Path(temporary), options.cheat)
        return _run(evaluation, options.stages or list(evaluation.stages), options.out)


def _run(evaluation: Evaluation, stages: list[str], out: Path) -> int:
    failed = 0
    for name in stages:
        started = time.monotonic()
        try:
            found = evaluation.stages[name]()
        except (OSError, KeyError, ValueError, StopIteration, subprocess.SubprocessError) as error:
            failed = 1
            found = {"broke off": f"{type(error).__name__}: {error}"}
        (out / f"{name}.json").write_text(json.dumps(found, indent=1, sort_keys=True))
        print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
