"""Runs the stages of ``run_all.sh``, each of which leaves one JSON file."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import agreement
import analysis
import baselines
import bundles
import cheat_suite
import counted
import given_stage
import memory
import models
import originals
import profilers
import ranking
import refusals
import roofline
import sanitizer
import throughput
import tuned
import variant_counts
from description import describe
from timing import timing
from workplace import ROOT, Ran, Workplace, finish

HERE = Path(__file__).parent
TASKS = "//tasks/..."
EXPERT = "--agent=expert"
LIMITS = {
    "machine": 30.0,
    "build": 60.0,
    "suite": 480.0,
    "bundle": 60.0,
    "replay": 540.0,
    "side_by_side": 120.0,
    "cheats": 300.0,
    "extension": 100.0,
    "agreement": 300.0,
    "durations": 200.0,
    "memory": 240.0,
    "baselines": 300.0,
    "verifying": 400.0,
    "tuner": 300.0,
    "api": 120.0,
    "sanitize": 180.0,
    "counters": 300.0,
    "refusals": 30.0,
    "copies": 60.0,
    "roofline": 30.0,
    "analysis": 120.0,
    "model": 560.0,
    "modelled": 300.0,
    "ordered": 300.0,
    "originals": 560.0,
    "given": 400.0,
}
"""The stages, in the order in which they need each other, and how many seconds each may take.

The tuner has more where it is given more, or where there are fewer devices than tasks.
"""

AT_ONCE = ("side_by_side", "cheats", "extension")
"""Stages that disturb nobody where there is more than one device: the first has the last one."""

_ON_THE_LAST = ("side_by_side.py", "extension.py")
_BUNDLING = 20.0
APIECE = 12
"""Evaluations of each kind and device that are timed through the interface for Python."""


class Evaluation:
    """The stages, each of which is called with the end of its time, by the monotonic clock."""

    def __init__(self, out: Path, folder: Path, options: argparse.Namespace) -> None:
        self._out = out
        self._folder = folder
        self._cheats: Sequence[str] = options.cheat
        self._asked: Sequence[str] = [task for task in options.task if task != TASKS]
        self._tasks = self._asked or [label for label, _ in roofline.tasks(ROOT)]
        self._apiece: int = options.apiece
        self._tuner_seconds: int = options.tuner_seconds
        self._models: Sequence[str] = options.model
        self._counts: Path | None = options.analysis_counts
        self._variants: Path | None = options.variant_counts
        self._bundles: Sequence[Path] = [file.absolute() for file in options.bundle]
        self._imports: Path | None = options.imports
        self._gates: str = options.gates
        self._end: float = time.monotonic() + options.seconds
        self._lock = threading.Lock()
        self._made: Workplace | None = None
        self.devices = len(describe()["devices"])

    def run(self, stage: str, *, alone: bool) -> Any:
        """One stage; where it is not ``alone``, beside the others of ``AT_ONCE``."""
        work: Callable[[Workplace], Any] = getattr(self, stage)
        last = self.devices - 1
        flags = () if alone else (f"--devices={','.join(map(str, range(last)))}",)
        return work(self._workplace().until(self.deadline(stage), flags))

    def deadline(self, stage: str) -> float:
        """When a stage has to end. What was judged is bundled even if all time is up."""
        now = time.monotonic()
        usual = min(now + self._limit(stage), self._end)
        return max(usual, now + _BUNDLING) if stage == "bundle" else usual

    def _limit(self, stage: str) -> float:
        if stage != "tuner":
            return LIMITS[stage]
        needed = tuned.limit(ROOT, self._asked, self._tuner_seconds, self.devices)
        return max(LIMITS[stage], needed)

    def _workplace(self) -> Workplace:
        with self._lock:
            if self._made is None:
                self._made = Workplace.make(self._folder)
            return self._made

    def machine(self, _: Workplace) -> Any:
        """What this machine is."""
        return describe()

    def build(self, workplace: Workplace) -> Any:
        """Compile every task's expert: seconds by task, and what the compilers say of kernels."""
        ran = workplace.test(*self._tasks, EXPERT, "--gates=compile")
        return {"seconds": round(ran.seconds, 2), "gates": _gates(ran)}

    def side_by_side(self, workplace: Workplace) -> Any:
        """In a process of its own, alone on the last device."""
        file = self._out / "side_by_side.json"
        ran = self._script(
            workplace, "side_by_side.py", f"--experts={workplace.root}", f"--out={file}"
        )
        found = json.loads(file.read_bytes()) if file.exists() else {}
        return {**found, **ran.broken, "said": ran.err.splitlines()[-5:]}

    def extension(self, workplace: Workplace) -> Any:
        """What PyTorch's own way to compile a kernel takes here."""
        with tempfile.TemporaryDirectory() as folder:
            return self._script(workplace, "extension.py", folder).json

    def api(self, workplace: Workplace) -> Any:
        """Evaluations a minute through the interface for Python, one a device at a time."""
        count = self._apiece * self.devices
        return {
            label: self._script(
                workplace, "throughput.py", workplace.root, label, self.devices, count
            ).json
            for label in throughput.TASKS
        }

    def cheats(self, workplace: Workplace) -> Any:
        """Candidates that cheat or break, each with the verdict that it deserves."""
        return cheat_suite.judge(workplace, self._cheats)

    def agreement(self, workplace: Workplace) -> Any:
        """Repeated runs, and processes that want one device."""
        return agreement.measure(workplace, self._tasks)

    def durations(self, workplace: Workplace) -> Any:
        """What a profiler says that kernels take; after ``suite``."""
        file = self._out / "durations.json"
        ran = self._script(workplace, "durations.py", workplace.root, file)
        return ran.broken or json.loads(file.read_bytes())

    def memory(self, workplace: Workplace) -> Any:
        """The suite beside somebody who has most of the memory."""
        return memory.measure(workplace, self._tasks)

    def baselines(self, workplace: Workplace) -> Any:
        """What PyTorch is timed as, chosen once; and whether the count of memory holds."""
        return {
            "choices": baselines.measure(workplace, self._tasks),
            "memory": baselines.held(workplace, self._asked or [TASKS]),
        }

    def verifying(self, workplace: Workplace) -> Any:
        """What the judge's own work takes for one call of each task, the longest first."""
        found, ran = workplace.script("verifying.py", self._asked or [TASKS])
        return {**ran.broken, "longest": ran.out.splitlines(), "tasks": found}

    def tuner(self, workplace: Workplace) -> Any:
        """The offline agent, on the tasks that declare tunables."""
        seconds, devices = self._tuner_seconds, self.devices
        return tuned.measure(workplace, self._out, seconds, self._asked, devices)

    def sanitize(self, workplace: Workplace) -> Any:
        """Mistakes that compute-sanitizer must find, and our own kernels."""
        return sanitizer.collect(workplace)

    def counters(self, workplace: Workplace) -> Any:
        """What Nsight Compute says in the product, of kernels whose bound is known and of own."""
        return profilers.collect(workplace)

    def refusals(self, workplace: Workplace) -> Any:
        """What is refused, and how."""
        return refusals.collect(workplace)

    def bundle(self, workplace: Workplace) -> Any:
        """What ``suite`` has judged, as one file that others can check and rerun."""
        file = self._out / "suite.json"
        suite = json.loads(file.read_bytes()) if file.exists() else {"tasks": {}}
        done = [label for label, row in suite["tasks"].items() if "score" in row]
        return bundles.publish(workplace, done or self._tasks, "expert", self._out / "expert.kab")

    def replay(self, workplace: Workplace) -> Any:
        """What others have published, rerun here."""
        if not self._bundles:
            raise ValueError("give --bundle, a file that kabuild publish has written")
        return {
            file.name: bundles.replay(workplace, file, self._gates, self._asked)
            for file in self._bundles
        }

    def suite(self, workplace: Workplace) -> Any:
        """All tasks with their experts, then again from the cache."""
        cold = workplace.test(*self._tasks, EXPERT)
        warm = workplace.test(*self._tasks, EXPERT)
        rows: dict[str, Any] = {}
        for entry in cold.json["targets"]:
            label = entry["task"].partition(":")[0]
            row = rows.setdefault(label, {"gates": {}})
            gate = row["gates"][entry["gate"]] = _gate(entry)
            if entry["verdict"] in {"FAIL", "REJECTED"}:
                target = f"{label[2:]}:{label.rpartition('/')[2]}.{entry['gate']}"
                gate["detail"] = workplace.read(target, "verdict.json").get("detail", "")
            row |= {key: entry[key] for key in ("speedup", "score") if entry[key] is not None}
        for label, row in rows.items():
            row.update(timing(workplace, label))
        return {
            "cold": {"seconds": round(cold.seconds, 2), "exit_code": cold.code},
            "cached": {"seconds": round(warm.seconds, 2), "exit_code": warm.code},
            "totals": cold.json.get("totals"),
            "said": cold.err.splitlines()[-60:],
            "tasks": rows,
        }

    def copies(self, workplace: Workplace) -> Any:
        """Copies of as many bytes as experts move."""
        found, ran = workplace.script("copies.py", self._asked)
        return {**ran.broken, "tasks": found}

    def roofline(self, workplace: Workplace) -> Any:
        """From what ``suite``, ``side_by_side`` and, if it was run, ``copies`` have left."""
        suite, limits, copies = (
            json.loads(file.read_bytes()) if file.exists() or name != "copies" else {"tasks": {}}
            for name in ("suite", "side_by_side", "copies")
            for file in [self._out / f"{name}.json"]
        )
        return roofline.shares(workplace.root, suite["tasks"], limits["device"], copies["tasks"])

    def analysis(self, workplace: Workplace) -> Any:
        """What is counted on the CPU beside what Nsight Compute counts."""
        if self._counts is None:
            raise ValueError("give --analysis_counts, a directory that counted.py has written")
        return analysis.compare(workplace, counted.read(self._counts), self._out)

    def model(self, workplace: Workplace) -> Any:
        """Models with other kernels: what was predicted, and what is measured."""
        chosen = [model for model in models.MODELS if model.name in self._models]
        save = models.saver(self._out / "model.json")
        return models.measure(workplace, save, chosen or models.MODELS)

    def modelled(self, workplace: Workplace) -> Any:
        """Variants of kernels as the device ranks them, and as a model of their counts does."""
        return ranking.measure(workplace, self._counted_variants())

    def ordered(self, workplace: Workplace) -> Any:
        """The same variants on the visible configs, whose times the model orders."""
        return ranking.measure(workplace, self._counted_variants(), whole=True)

    def originals(self, workplace: Workplace) -> Any:
        """Tasks of other benchmarks, each original against itself."""
        if self._imports is None:
            raise ValueError("give --imports, a workspace that has imported benchmarks")
        originals.adopt(workplace, self._imports)
        found = originals.judge(workplace, self._asked, self._gates)
        print("\n".join(originals.table(found) or found["said"]))
        return found

    def given(self, workplace: Workplace) -> Any:
        """Given kernels by a light clock."""
        return given_stage.measure(workplace, self._asked, self.devices)

    def _counted_variants(self) -> dict[str, Any]:
        if self._variants is None:
            raise ValueError(
                "give --variant_counts, a directory that variant_counts.py has written"
            )
        return variant_counts.read(self._variants)

    def _script(self, workplace: Workplace, name: str, *arguments: object) -> Ran:
        """A program of this directory, in a process of its own."""
        started = time.monotonic()
        chosen = {"CUDA_VISIBLE_DEVICES": str(self.devices - 1)} if name in _ON_THE_LAST else {}
        process = subprocess.Popen(
            [sys.executable, str(HERE / name), *map(str, arguments)],
            env=workplace.env | chosen,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return finish(process, started, workplace.deadline - started)


def _gates(ran: Ran) -> dict[str, Any]:
    return {f"{entry['task']} {entry['gate']}": _gate(entry) for entry in ran.json["targets"]}


def _gate(entry: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("verdict", "reason", "summary", "seconds", "hermetic")
    return {key: entry[key] for key in kept}


def main() -> int:
    """Run the chosen stages; 1 where one of them breaks off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("stages", nargs="*", metavar="stage")
    parser.add_argument("--folder", type=Path, help="where the repository is copied to, and kept")
    parser.add_argument("--cheat", action="append", default=[], help="only those of this name")
    parser.add_argument("--task", action="append", default=[], help="only those of this pattern")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for all stages together")
    parser.add_argument("--apiece", type=int, default=APIECE, help="evaluations that are timed")
    parser.add_argument("--tuner_seconds", type=int, default=tuned.SECONDS, help="for each task")
    parser.add_argument("--variant_counts", type=Path, help="what variant_counts.py has written")
    parser.add_argument("--bundle", action="append", default=[], type=Path, help="to replay")
    parser.add_argument("--model", action="append", default=[], help="only the one of this name")
    parser.add_argument("--analysis_counts", type=Path, help="what counted.py has written")
    parser.add_argument("--imports", type=Path, help="a workspace that has imported benchmarks")
    parser.add_argument("--gates", default="", help="of originals and replay; all by default")
    options = parser.parse_intermixed_args()
    if unknown := [stage for stage in options.stages if stage not in LIMITS]:
        parser.error(f"stages are {', '.join(LIMITS)}; not {', '.join(unknown)}")
    out: Path = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        evaluation = Evaluation(out, folder.absolute(), options)
        given = {
            "analysis": options.analysis_counts,
            "modelled": options.variant_counts,
            "ordered": options.variant_counts,
            "replay": options.bundle,
            "originals": options.imports,
        }
        usual = [stage for stage in LIMITS if given.get(stage, True)]
        return _run(evaluation, options.stages or usual, out)


def _run(evaluation: Evaluation, stages: list[str], out: Path) -> int:
    """Each stage in turn, or those that may be at once, together."""
    together = [stage for stage in stages if stage in AT_ONCE] if evaluation.devices > 1 else []
    failed = 0
    for stage in stages:
        if stage not in together:
            failed |= _stage(evaluation, stage, out)
        elif stage == together[0]:
            with ThreadPoolExecutor(len(together)) as pool:
                ended = [
                    pool.submit(_stage, evaluation, one, out, alone=len(together) == 1)
                    for one in together
                ]
            failed |= max(one.result() for one in ended)
    return failed


def _stage(evaluation: Evaluation, stage: str, out: Path, *, alone: bool = True) -> int:
    started = time.monotonic()
    try:
        found = evaluation.run(stage, alone=alone)
    except (OSError, KeyError, ValueError, StopIteration, subprocess.SubprocessError) as error:
        found = {"broke off": f"{type(error).__name__}: {error}"}
    (out / f"{stage}.json").write_text(json.dumps(found, indent=1, sort_keys=True))
    seconds = f"{stage}: {time.monotonic() - started:.1f} s"
    if "broke off" in found:
        print(f"{seconds}, broke off: {found['broke off']}", flush=True)
        return 1
    print(seconds, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
