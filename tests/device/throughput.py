"""How many kernels a minute are judged through kabuild's interface for Python.

    python throughput.py WORKSPACE JOBS COUNT

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
    "//tasks/hip2hip/softmax": ("solutions/expert/softmax.hip", "HIP"),
    "//tasks/triton2triton/rmsnorm": ("solutions/expert/rmsnorm.py", "Triton"),
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


def measure(workspace: Path, jobs: int, count: int) -> dict[str, Any]:
    """Evaluations a minute by kind of kernel: all compiled, all judged, none cached."""
    found: dict[str, Any] = {"jobs": jobs, "gates": list(GATES)}
    platform = os.environ.get("KABUILD_PLATFORM", "cuda")
    with kabuild.Evaluator(workspace, jobs=jobs, platform=platform) as evaluator:
        for label, (file, kind) in TASKS.items():
            sources = variants(workspace / label.removeprefix("//") / file, count + jobs)
            warm = [next(sources) for _ in range(jobs)]
            list(evaluator.map(label, warm, gates=GATES))
            started = time.monotonic()
            done = list(evaluator.map(label, sources, gates=GATES))
            seconds = time.monotonic() - started
            found[kind] = {
                "task": label,
                "evaluations": len(done),
                "passed": sum(one.passed for one in done),
                "cached": sum(one.cached for one in done),
                "seconds": round(seconds, 2),
                "a_minute": round(60 * len(done) / seconds, 1),
                "seconds_each": [round(one.seconds, 2) for one in done],
            }
    return found


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
