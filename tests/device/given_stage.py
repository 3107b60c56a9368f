"""Given kernels, timed by ``given.py`` on all devices at once."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from workplace import Workplace

from tests.tasks.declared import all_tasks

FAMILIES = ("//tasks/hip2hip", "//tasks/triton2triton")
"""Those whose tasks begin with a kernel that runs."""
_LATE = 124


def measure(workplace: Workplace, tasks: Sequence[str], devices: int) -> dict[str, Any]:
    """By task, what ``given.py`` has found; ``left`` are the tasks that it has not reached.

    ``tasks`` are labels, or patterns such as ``//tasks/hip2hip/...``; without any, all that ship.
    """
    chosen = [task for task in _expanded(tasks) if task.startswith(FAMILIES)]
    compiled = [task for task in chosen if task.startswith(FAMILIES[0])]
    if compiled:
        workplace.test(*compiled, "--agent=none", "--gates=compile")
    rows: dict[str, Any] = {}
    shares = [
        threading.Thread(target=_share, args=(workplace, chosen[number::devices], number, rows))
        for number in range(devices)
    ]
    for thread in shares:
        thread.start()
    for thread in shares:
        thread.join()
    return {"tasks": dict(sorted(rows.items())), "left": [t for t in chosen if t not in rows]}


def _expanded(tasks: Sequence[str]) -> list[str]:
    """Labels without the target's name, in the order in which kabuild expands patterns."""
    known = sorted(task.label for task in all_tasks())
    if not tasks:
        return known
    named = {task.partition(":")[0] for task in tasks}
    below = tuple(task.removesuffix("...") for task in named if task.endswith("/..."))
    return [task for task in known if task in named or task.startswith(below)]


def _share(workplace: Workplace, tasks: Sequence[str], device: int, rows: dict[str, Any]) -> None:
    """Time some tasks on one device, with a new process after one that a kernel has ended."""
    env: Mapping[str, str] = {"CUDA_VISIBLE_DEVICES": str(device)}
    left = list(tasks)
    while left:
        found, ran = workplace.script("given.py", left, env)
        begun = [task for task, row in found.items() if "begun" in row]
        rows |= {task: row for task, row in found.items() if task not in begun}
        if ran.code == _LATE or not found:
            return
        said = (ran.err.strip().splitlines() or ["it said nothing"])[-1]
        rows |= {
            task: {"error": f"the process ended with {ran.code}: {said[:200]}"} for task in begun
        }
        left = [task for task in left if task not in rows]
