"""kabuild beside other build systems, on equal work, in one run.

    python tests/bench/bench_scale.py [TASKS ...] [--beside [SYSTEM ...]]

For each number of tasks (five actions each): seconds of a whole fresh process for a cold build,
for one where nothing changed (median of five), for one where one kernel changed, and for one
whose outputs were deleted while the cache was kept; then ratios to kabuild. Also kabuild's peak
memory, and what its null build spends its milliseconds on. Systems that are not installed are
left out, and named; ``--beside`` alone measures kabuild alone.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.null_parts import measure_parts
from tests.bench.other_systems import SYSTEMS, System
from tests.testkit.generated import generate

REPEATS = 5
COLUMNS = ("cold", "null", "one", "restore")


ARGUMENTS = ("test", "//...", "-j2", "--test_output=summary")


def measure_kabuild(root: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds by column, with ``peak`` in MB; and milliseconds of a null build by part."""
    store = root.parent / "store"
    env = {**os.environ, "KABUILD_CACHE": str(store), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "kabuild", *ARGUMENTS]

    def run() -> None:
        subprocess.run(command, cwd=root, env=env, check=True, capture_output=True)

    kernel = root / "tasks/family0/t0/kernel.hip"
    found = {"cold": _seconds(run)}
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    time.sleep(2.1)  # what was touched a moment ago is read again, once
    run()
    found["null"] = statistics.median(_seconds(run) for _ in range(REPEATS))
    found["one"] = _changed(kernel, run)
    shutil.rmtree(root / "out")
    shutil.rmtree(store / "memories", ignore_errors=True)
    found["restore"] = _seconds(run)
    return found | {"peak": peak}, measure_parts(root, env, ARGUMENTS, REPEATS)


def measure(system: System, root: Path, tasks: int) -> dict[str, float]:
    """Seconds by column; without ``restore`` where a system has no cache apart."""
    system.write(root, tasks)

    def run() -> None:
        system.run(root)

    found = {"cold": _seconds(run)}
    nulls = []
    for _ in range(REPEATS if not system.stop else 2):
        system.rest(root)
        nulls.append(_seconds(run))
    found["null"] = statistics.median(nulls)
    system.rest(root)
    found["one"] = _changed(root / "tasks/family0/t0/kernel.hip", run)
    if system.outputs:
        system.forget_outputs(root)
        found["restore"] = _seconds(run)
    system.rest(root)
    return found


def _changed(kernel: Path, run: Callable[[], None]) -> float:
    """Median over edits that were never built before."""
    times = []
    for edit in range(3):
        kernel.write_text(f"// edit {edit} at {time.time()}\n")
        times.append(_seconds(run))
    return statistics.median(times)


def _seconds(run: Callable[[], None]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _print(name: str, found: dict[str, float], own: dict[str, float] | None) -> None:
    cells = []
    for column in COLUMNS:
        value = found.get(column)
        ratio = f" ({value / own[column]:6.1f}x)" if value is not None and own else ""
        cells.append(f"{value:8.2f}{ratio:10}" if value is not None else f"{'-':>18}")
    print(f"{name:12}{''.join(cells)}", flush=True)


def main() -> None:
    """One table for each number of tasks."""
    options = _options()
    missing = [system.name for system in SYSTEMS if not system.installed]
    for tasks in options.tasks:
        print(f"{tasks} tasks, {tasks * 5} actions; seconds, and how many times kabuild's")
        print(f"{'':12}" + "".join(f"{column:>8}{'':10}" for column in COLUMNS))
        own = None
        for system in (None, *SYSTEMS):
            if system and (not system.installed or system.name not in options.beside):
                continue
            with tempfile.TemporaryDirectory() as directory:
                root = Path(directory) / "work"
                generate(root, tasks)
                if system is None:
                    own, parts = measure_kabuild(root)
                    _print("kabuild", own, None)
                    continue
                try:
                    _print(system.name, measure(system, root, tasks), own)
                except RuntimeError as error:
                    print(f"{system.name:12}failed: {error}", flush=True)
        if own:
            print(f"kabuild's peak memory: {own['peak']:.0f} MB")
            told = ", ".join(f"{part} {spent:.0f}" for part, spent in parts.items())
            print(f"kabuild's null build, ms: {told}; all {sum(parts.values()):.0f}\n")
    if missing:
        print(f"not installed: {', '.join(missing)}")


def _options() -> argparse.Namespace:
    names = [system.name for system in SYSTEMS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", type=int, nargs="*", default=[1000], help="how many tasks (1000)")
    parser.add_argument(
        "--beside", nargs="*", default=names, choices=names, help="other systems (all installed)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
