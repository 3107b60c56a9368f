"""What PyTorch baselines are timed as, and how long choosing that and using it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workplace import PLATFORM, Workplace

FAMILY = "//tasks/torch2hip/"
_SHARED = ("--agent=expert", "--gates=compile,correctness,perf")


def measure(workplace: Workplace, tasks: Sequence[str]) -> dict[str, Any]:
    """By task: seconds of the choice, and of perf gates that use it; and what was chosen.

    ``ran_again`` says whether judging a second time repeated the choice, as it must not.
    """
    return {task: _shared(workplace, task) for task in tasks if task.startswith(FAMILY)}


def held(workplace: Workplace, tasks: Sequence[str]) -> Any:
    """What verifying takes of the memory, by count and by allocator, in a process of its own."""
    found, ran = workplace.script("held.py", tasks)
    return found or ran.broken


def _shared(workplace: Workplace, task: str) -> dict[str, Any]:
    package, name = task.removeprefix("//"), task.rpartition("/")[2]
    part = f"{package}:{name}.baseline"
    made = workplace.kabuild("build", f"//{part}", PLATFORM, *workplace.flags)
    first = workplace.test(task, *_SHARED)
    again = workplace.test(task, *_SHARED, "--nocache_test_results")
    choice, compiled = (workplace.read(part, file) for file in ("baseline.json", "compiled.json"))
    return {
        "seconds": round(made.seconds, 2),
        "exit_code": made.code,
        "said": made.out.splitlines()[:4] if made.code else [],
        "perf_seconds": [_perf_seconds(ran.json) for ran in (first, again)],
        "ran_again": any(f"Baseline //{part}" in ran.err for ran in (first, again)),
        "baselines": choice.get("baselines", {}),
        "handed_on": {"files": len(compiled), "bytes": sum(map(len, compiled.values())) * 3 // 4},
    }


def _perf_seconds(report: Any) -> float | None:
    found = (entry["seconds"] for entry in report["targets"] if entry["gate"] == "perf")
    return next(found, None)
