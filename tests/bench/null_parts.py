"""Where the milliseconds of a build in which nothing changed go.

Run by itself it is such a build, in the current directory, that says so on its last line of
stderr; ``bench_scale.py`` runs it a few times and shows the medians.
"""

from __future__ import annotations

import sys
import time

STARTED = time.monotonic()  # before anything else is imported

import json
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PARTS = ("interpreter", "imports", "read", "stat", "print", "rest", "exit")
"""``read`` is of what is remembered, ``stat`` of every file, ``rest`` the command line."""

_SETTLING = 2


def measure_parts(
    root: Path, env: Mapping[str, str], arguments: Sequence[str], repeats: int
) -> dict[str, float]:
    """Median milliseconds by part, of builds in ``root`` whose store knows all results."""
    command = [sys.executable, __file__, *arguments]
    found: list[dict[str, float]] = []
    for number in range(_SETTLING + repeats):
        began = time.monotonic()
        done = subprocess.run(command, cwd=root, env=env, check=True, capture_output=True)
        ended = time.monotonic()
        told = json.loads(done.stderr.splitlines()[-1])
        told["interpreter"] = told.pop("started") - began
        told["exit"] = ended - told.pop("ended")
        if number < _SETTLING:
            time.sleep(2.1)  # what was touched a moment ago is read again, once
        else:
            found.append(told)
    return {part: statistics.median(told[part] for told in found) * 1e3 for part in PARTS}


class Stopwatch:
    """Seconds by part, of functions that are replaced by timed ones."""

    def __init__(self) -> None:
        self.spent = {"read": 0.0, "stat": 0.0, "print": 0.0}

    def watch(self, owner: Any, name: str, part: str) -> None:
        """Count the time of ``owner.name`` as ``part``'s."""
        inner = getattr(owner, name)

        def outer(*arguments: Any) -> Any:
            began = time.monotonic()
            try:
                return inner(*arguments)
            finally:
                self.spent[part] += time.monotonic() - began

        setattr(owner, name, outer)


def main() -> None:
    """One build, and what it spent on what."""
    began = time.monotonic()
    import click

    import kabuild.cli.test  # noqa: F401 - what a command imports when it is called
    from kabuild.cli import main, null_build
    from kabuild.store.build_memo import BuildMemo, BuildMemos

    imported = time.monotonic()
    stopwatch = Stopwatch()
    stopwatch.watch(BuildMemos, "read", "read")
    stopwatch.watch(BuildMemo, "holds", "stat")
    stopwatch.watch(BuildMemo, "clean", "stat")
    stopwatch.watch(null_build, "render_table", "print")
    stopwatch.watch(click, "echo", "print")
    try:
        main.main()
    finally:
        ended = time.monotonic()
        spent = {
            "started": STARTED,
            "imports": imported - began,
            **stopwatch.spent,
            "rest": ended - imported - sum(stopwatch.spent.values()) + began - STARTED,
            "ended": ended,
        }
        print(json.dumps(spent), file=sys.stderr)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
