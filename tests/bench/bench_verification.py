"""What verification costs beyond timing alone: the perf gate against the same launches, unverified.

python tests/bench/bench_verification.py [REPETITIONS] [TASK ...]

Timing alone is what the gate did, by its own samples: as many fresh runners, batches and calls on
both sides, pilot and warm calls among them, but with one set of inputs for all, no oracle, and
outputs that nobody looks at. Both start from imported modules and a compiled kernel, alternate,
and run in one process each. The last figure is the gate against the reported time of the timed
batches, in which nothing but kernels runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from base.spec import Spec
    from runners.launcher import Launcher

ROOT = Path(__file__).resolve().parents[2]
TASKS = ("hip2hip/softmax", "hip2hip/gemm", "torch2hip/topk", "triton2triton/rmsnorm")
PILOT_SAMPLES = 2


def staged(task: str, store: Path) -> Path:
    """The directory in which the perf gate of a task's expert was run."""
    command = [sys.executable, "-m", "kabuild", "bench", f"//tasks/{task}", "--sandbox_debug"]
    env = {**os.environ, "KABUILD_CACHE": str(store), "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, "--fresh"], cwd=ROOT, env=env, check=True, capture_output=True)
    (spec,) = store.glob(f"debug/*{task.rpartition('/')[2]}.perf/*/exec/spec.json")
    return spec.parent


def inside(folder: Path) -> Mapping[str, float]:
    """Judge once and time once, in this process; seconds of each."""
    os.chdir(folder)
    sys.path.insert(0, "tools")
    import torch
    from base.spec import read_spec
    from perf import gate
    from runners.launcher import Launcher

    torch.set_num_threads(1)
    with Launcher.start() as launcher:
        spec = read_spec(Path("spec.json"))
        began = time.monotonic()
        verdict = gate.run(spec, launcher)
        judged = time.monotonic() - began
        assert verdict.outcome == "PASS", verdict.summary
        taken = json.loads(verdict.files["samples.json"])
        began = time.monotonic()
        _time_alone(spec, launcher, taken)
        timed = time.monotonic() - began
    sides = [side for config in taken["configs"].values() for side in config.values()]
    reported = sum(s["reported_ns"] for side in sides for process in side for s in process) / 1e9
    return {"judged": judged, "timed": timed, "reported": reported}


def _time_alone(spec: Spec, launcher: Launcher, taken: Mapping[str, Any]) -> None:
    """Launch what the gate launched."""
    import torch
    from base.program import RunnerPolicy
    from perf.measure import EMPTY_BATCHES
    from truth.oracle import Oracle

    oracle = Oracle(spec.reference, spec.signature)
    known = {
        config.name: oracle.inputs(config, torch.Generator().manual_seed(1), "default")
        for config in spec.configs
    }
    programs = {"candidate": spec.candidate, "baseline": spec.baseline}
    rounds = len(next(iter(taken["configs"].values()))["candidate"])
    for number in range(rounds + 1):
        for side, program in programs.items():
            policy = RunnerPolicy.suited(program, RunnerPolicy.call_seconds)
            with launcher.open(program, spec.signature, policy) as runner:
                for config in spec.configs:
                    batches = _batches(taken, config.name, side, number)
                    slots = max(batches)
                    inputs = [known[config.name]] * slots
                    runner.load(config, slots)
                    runner.batch(inputs[:1])
                    for _ in range(EMPTY_BATCHES if side == "baseline" else 0):
                        runner.empty()
                    for count in batches:
                        runner.batch(inputs[:count])
                    if number and config.name in taken["warm"]:
                        runner.repeat(inputs[0], slots)


def _batches(taken: Mapping[str, Any], config: str, side: str, number: int) -> list[int]:
    """How many calls each batch of a process had; the pilot's is process 0."""
    if number == 0:
        return [1] * PILOT_SAMPLES
    process = taken["configs"][config][side][number - 1]
    return [sample["slots"] for sample in process for _ in range(sample["attempts"])]


def main(repetitions: int, tasks: Sequence[str]) -> None:
    """Print one line a task, then the mean over tasks."""
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        for task in tasks:
            folder = staged(task, Path(name))
            runs = []
            for _ in range(repetitions):
                command = [sys.executable, __file__, "--inside", str(folder)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                runs.append(json.loads(done.stdout))
            judged, timed, reported = (
                statistics.median(run[key] for run in runs)
                for key in ("judged", "timed", "reported")
            )
            ratio = statistics.median(run["judged"] / run["timed"] for run in runs)
            ratios.append(ratio)
            print(
                f"{task:22} gate {judged:.2f} s, timing alone {timed:.2f} s: {ratio:.2f} x; "
                f"kernels under the clock {reported:.2f} s: {judged / reported:.1f} x",
                flush=True,
            )
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    mean = statistics.geometric_mean(ratios)
    print(f"verification over timing alone: {mean:.2f} x (geometric mean); load {load}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repetitions", type=int, nargs="?", default=3, help="how many (3)")
    parser.add_argument("task", nargs="*", default=TASKS, help=f"by default {' '.join(TASKS)}")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(inside(options.inside)))
    else:
        main(options.repetitions, options.task)
