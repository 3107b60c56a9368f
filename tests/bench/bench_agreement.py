"""Whether measuring a pair again agrees with its intervals, and how often those hold the truth.

python tests/bench/bench_agreement.py [REPETITIONS] [TASK ...]

Each repetition (20) is one whole perf gate, measured anew. The baseline against itself has the
ratio 1: the share of its 95 % intervals that hold 1 is their coverage. Of the expert the true
ratio is not known: two repetitions agree where their points are no further apart than both
intervals together allow, sqrt(a^2 + b^2) for half-widths a and b of the log ratio. Retried, and
said, is what the machine failed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TASKS = ("hip2hip/softmax",)
FAILED_BY_MACHINE = 36
RETRIES = 5


@dataclass(frozen=True)
class Interval:
    """One measured speedup."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Of the log ratio."""
        return math.log(self.high / self.low) / 2

    def agrees(self, other: Interval) -> bool:
        """Whether both may be of one truth."""
        apart = abs(math.log(self.value / other.value))
        return apart <= math.hypot(self.half_width, other.half_width)


def measured(task: str, agent: str, env: Mapping[str, str]) -> Mapping[str, Interval]:
    """One perf gate, run now: the interval of each config."""
    command = [sys.executable, "-m", "kabuild", "bench", f"//tasks/{task}", f"--agent={agent}"]
    for _ in range(RETRIES):
        done = subprocess.run(
            [*command, "--fresh", "--json"],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            break
        print(f"  not measured: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        assert done.returncode == FAILED_BY_MACHINE, done.stderr
    (found,) = json.loads(done.stdout).values()
    return {
        config["config"]: Interval(config["speedup"], config["low"], config["high"])
        for config in found["configs"]
    }


def report(what: str, intervals: Sequence[Interval], truth: float | None) -> None:
    """Print one line on the repetitions of one config."""
    pairs = list(itertools.combinations(intervals, 2))
    agreeing = sum(first.agrees(second) for first, second in pairs)
    points = [interval.value for interval in intervals]
    width = statistics.median(interval.half_width for interval in intervals)
    held = ""
    if truth is not None:
        count = sum(interval.low <= truth <= interval.high for interval in intervals)
        held = f", {count} of {len(intervals)} hold {truth:g}"
    print(
        f"{what}: {statistics.median(points):.3f}x, points {min(points):.3f} to "
        f"{max(points):.3f}, half-width {width:.3f} (median){held}; "
        f"{agreeing} of {len(pairs)} pairs agree ({agreeing / len(pairs):.1%})",
        flush=True,
    )


def main(repetitions: int, tasks: Sequence[str]) -> None:
    """Print a line for each config and side, then the coverage over all of them."""
    held = total = 0
    with tempfile.TemporaryDirectory() as store:
        env = {**os.environ, "KABUILD_CACHE": store, "PYTHONPATH": str(ROOT)}
        for task, agent in itertools.product(tasks, ("none", "expert")):
            found: dict[str, list[Interval]] = defaultdict(list)
            for _ in range(repetitions):
                for config, interval in measured(task, agent, env).items():
                    found[config].append(interval)
            for config, intervals in found.items():
                truth = 1.0 if agent == "none" else None
                report(f"{task} {agent} {config}", intervals, truth)
                if truth:
                    held += sum(i.low <= truth <= i.high for i in intervals)
                    total += len(intervals)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"coverage of the 95 % interval: {held} of {total} ({held / total:.1%}); load {load}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repetitions", type=int, nargs="?", default=20, help="how many (20)")
    parser.add_argument("task", nargs="*", default=TASKS, help=f"by default {' '.join(TASKS)}")
    options = parser.parse_args()
    main(options.repetitions, options.task)
