"""What a null build costs: every action cached, every source unchanged, a fresh process.

    python tests/bench/bench_null.py [ACTIONS] [FILES] [--profile]

Prints milliseconds per part of the back tower (median of fresh processes) and, with
``--profile``, where the time goes. Nothing is analysed or loaded: that is the front's.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from threading import Event

from kabuild.base.canonical import canonical_json
from kabuild.execution import CachedExecutor, Execution, Inputs, Prepared
from kabuild.model.action import Action, Artifact, Literal, Source, Toolchain
from kabuild.model.event import Event as BuildEvent
from kabuild.model.graph import ActionGraph
from kabuild.model.label import Label
from kabuild.model.platform import Platform
from kabuild.model.result import ActionResult, OutputFile
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.scheduler import FileLeases, History, Scheduler
from kabuild.store import Store

REPEATS = 7
CHAIN = 5
SHARED_TOOLS = 40
CPU = Platform("cpu", (("arch", "x86_64"), ("wave", "32")))


class InstantStrategy:
    """Makes every output at once, so that the cache fills quickly."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def hermetic(self) -> bool:
        """It runs nothing."""
        return True

    def run(self, prepared: Prepared, cancel: Event) -> Execution:
        """A passed gate with a binary of its own."""
        verdict = GateVerdict(prepared.action.gate, Verdict.PASS).to_json()
        files = (
            OutputFile("k.so", self._store.cas.put(str(prepared.key).encode())),
            OutputFile("verdict.json", self._store.cas.put(verdict)),
        )
        return Execution(ActionResult(0, files))


class NoSink:
    """Listens to nothing."""

    def emit(self, event: BuildEvent) -> None:
        """Forget ``event``."""


def make_workspace(root: Path, tasks: int, files: int) -> None:
    """Sources of ``tasks`` tasks, and a directory of tools that all share; all of them old."""
    for number in range(SHARED_TOOLS):
        _write(root / f"tools/part{number}.py", f"# tool {number}\n" * 100)
    for task in range(tasks):
        for number in range(files):
            _write(root / f"tasks/t{task}/f{number}.hip", f"// {task} {number}\n" * 100)


def make_graph(tasks: int, files: int) -> ActionGraph:
    """Chains of five gates per task, like a benchmark's."""
    python = Toolchain("python", "python", canonical_json(["p"] * 3000), home="/usr")
    actions: list[Action] = []
    for task in range(tasks):
        before: Action | None = None
        for number in range(CHAIN):
            inputs: dict[str, Artifact] = {
                "tools": Source("tools"),
                "spec.json": Literal(b'{"gate":"gate%d","task":%d}' % (number, task)),
            }
            if before is None:
                names = [f"f{n}.hip" for n in range(files)]
                inputs |= {f"src/{n}": Source(f"tasks/t{task}/{n}") for n in names}
            else:
                inputs["bin/k.so"] = before.output("k.so")
            before = Action(
                label=Label(f"tasks/t{task}", f"t.gate{number}"),
                argv=("${toolchain:python}/bin/python", "tools/part0.py", "spec.json"),
                inputs=tuple(inputs.items()),
                outputs=("k.so", "verdict.json"),
                platform=CPU,
                toolchains=(python,),
                gate=f"gate{number}",
                requires=(before.label,) if before else (),
            )
            actions.append(before)
    return ActionGraph.of(actions)


def build(root: Path, tasks: int, files: int) -> dict[str, float]:
    """One build in this process; milliseconds by part."""
    graph = make_graph(tasks, files)
    marks = [time.perf_counter()]
    store = Store.open(root / "store")
    marks.append(time.perf_counter())
    inputs = Inputs({"workspace": root / "work"}, store.index)
    executor = CachedExecutor(inputs, store.cas, store.actions, InstantStrategy(store))
    history = History(store.timings)
    scheduler = Scheduler(executor, NoSink(), FileLeases(store.leases), jobs=2, history=history)
    result = scheduler.run(graph)
    marks.append(time.perf_counter())
    store.close()
    marks.append(time.perf_counter())
    cached = sum(settled.cached for settled in result.settled.values())
    parts = [(b - a) * 1e3 for a, b in pairwise(marks)]
    return {
        "open": parts[0],
        "build": parts[1],
        "close": parts[2],
        "total": sum(parts),
        "cached": cached,
        "actions": len(graph),
    }


def main() -> None:
    """Fill a store, then measure fresh processes on it."""
    options = _options()
    files = options.files
    tasks = max(1, options.actions // CHAIN)
    if filled := os.environ.get("BENCH_NULL_ROOT"):
        print(canonical_json(build(Path(filled), tasks, files)).decode(), end="")
        return
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        make_workspace(root / "work", tasks, files)
        time.sleep(2.1)  # the file index trusts what has been quiet for two seconds
        first = build(root, tasks, files)
        print(f"fill: {first['total']:.0f} ms for {first['actions']:.0f} actions")
        _measure(root, tasks * CHAIN, files)
        if options.profile:
            _profile(root, tasks, files)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("actions", type=int, nargs="?", default=1000, help="how many (1000)")
    parser.add_argument("files", type=int, nargs="?", default=4, help="sources of a task (4)")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    return parser.parse_args()


def _measure(root: Path, actions: int, files: int) -> None:
    env = {**os.environ, "BENCH_NULL_ROOT": str(root)}
    command = [sys.executable, __file__, str(actions), str(files)]
    runs: list[dict[str, float]] = []
    for _ in range(REPEATS):
        text = subprocess.run(command, env=env, check=True, capture_output=True).stdout
        runs.append(json.loads(text))
    assert all(run["cached"] == run["actions"] for run in runs), "something was not cached"
    for part in ("open", "build", "close", "total"):
        values = [run[part] for run in runs]
        print(f"{part:6} {statistics.median(values):8.1f} ms  (best {min(values):.1f})")


def _profile(root: Path, tasks: int, files: int) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(build, root, tasks, files)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(22)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    main()
