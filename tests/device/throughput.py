"""How many kernels a minute are judged through kabuild's interface for Python.

    python throughput.py WORKSPACE TASK JOBS COUNT

Every kernel has code of its own, so that none is found in the cache.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kabuild

TASKS = {
    "//tasks/hip2hip/softmax": "solutions/expert/softmax.hip",
    "//tasks/triton2triton/rmsnorm": "solutions/expert/rmsnorm.py",
}
GATES = ("compile", "correctness")
_ADDED = {
    ".hip": 'extern "C" int variant() {{ return {number}; }}\n',
    ".py": "VARIANT = {number}\n",
}


def variants(path: Path, count: int) -> Iterator[str]:
    """The kernel with something else at its end each time."""
    text = path.read_text()
    for number in range(count):
        yield text + _ADDED[path.suffix].format(number=number)


def measure(workspace: Path, label: str, jobs: int, count: int) -> dict[str, Any]:
    """Evaluations a minute of one task: all compiled, all judged, none cached."""
    platform = os.environ.get("KABUILD_PLATFORM", "cuda")
    file = workspace / label.removeprefix("//") / TASKS[label]
    with kabuild.Evaluator(workspace, jobs=jobs, platform=platform) as evaluator:
        sources = variants(file, count + jobs)
        warm = [next(sources) for _ in range(jobs)]
        list(evaluator.map(label, warm, gates=GATES))
        started = time.monotonic()
        done = list(evaluator.map(label, sources, gates=GATES))
        seconds = time.monotonic() - started
    return {
        "gates": list(GATES),
        "jobs": jobs,
        "evaluations": len(done),
        "passed": sum(one.passed for one in done),
        "cached": sum(one.cached for one in done),
        "seconds": round(seconds, 2),
        "a_minute": round(60 * len(done) / seconds, 1),
        "seconds_each": [round(one.seconds, 2) for one in done],
    }


if __name__ == "__main__":
    _, folder, task, jobs, count = sys.argv
    print(json.dumps(measure(Path(folder), task, int(jobs), int(count))))
