"""What running agents costs beyond the agents themselves, and how fast they are answered.

python tests/bench/bench_agents.py [--tasks=12] [--trials=3] [--checks=10]

Three figures, in a workspace and a store of its own: the time of an agent's action without that
of its command; building all tasks with some trials of an agent again, with nothing changed; and
``kabuild-check`` on kernels that were never seen before, as an agent waits for it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.testkit.cli import REPOSITORY, CliWorkspace, Ran

AGENTS = """\
[[agent]]
name    = "idle"
command = ["true", "{trial}"]

[[agent]]
name    = "comments"
command = ["{python}", "{files}/comments.py", "{kernel}", "{trial}"]
files   = ["comments.py"]

[[agent]]
name    = "checks"
command = ["{python}", "{files}/checks.py", "{kernel}", "%d"]
files   = ["checks.py"]
"""
COMMENTS = """\
import pathlib, sys
kernel = pathlib.Path(sys.argv[1])
mark = "#" if kernel.suffix == ".py" else "//"
kernel.write_text(kernel.read_text() + f"{mark} trial {sys.argv[2]}\\n")
"""
CHECKS = """\
import json, pathlib, subprocess, sys, time
kernel = pathlib.Path(sys.argv[1])
mark = "#" if kernel.suffix == ".py" else "//"
text = kernel.read_text()
for number in range(int(sys.argv[2])):
    kernel.write_text(text + f"{mark} {number}\\n")
    start = time.perf_counter()
    ended = subprocess.run(["kabuild-check"], capture_output=True, text=True)
    taken = time.perf_counter() - start
    print(json.dumps({"seconds": taken, "code": ended.returncode, "said": ended.stdout}))
"""
CHECKED = ("hip2hip/softmax", "hip2hip/gemm", "triton2triton/rmsnorm", "triton2triton/matmul")
_DONE = re.compile(r"Solve (//\S+) done ([\d.]+) s")


def main(arguments: Sequence[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=12, help="how many tasks to build again")
    parser.add_argument("--trials", type=int, default=3, help="of each of these tasks")
    parser.add_argument("--checks", type=int, default=10, help="checks of each kernel")
    options = parser.parse_args(arguments)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as name:
        workspace = _workspace(Path(name), options.checks)
        _overhead(workspace)
        _checks(workspace)
        _again(workspace, options.tasks, options.trials)
    return 0


def _workspace(directory: Path, checks: int) -> CliWorkspace:
    made = CliWorkspace.make(directory)
    made.adopt("tasks")
    made.write("agents/BUILD.toml", AGENTS % checks)
    made.write("agents/comments.py", COMMENTS)
    made.write("agents/checks.py", CHECKS)
    return made


def _overhead(workspace: CliWorkspace) -> None:
    """The action's time less that of the command, by itself and after others of its kind."""
    flags = ("//tasks/hip2hip/softmax:softmax.agent", "--agent=//agents:idle", "-j1")
    alone = _beyond(workspace, _run(workspace, "build", *flags))
    ran = _run(workspace, "build", *flags, "--trials=9")
    following = _beyond(workspace, ran)[1:]
    print(f"an agent's run beyond its command, first of a build  {alone[0]:7.2f} s")
    _figure("an agent's run beyond its command, the next ones", following)


def _beyond(workspace: CliWorkspace, ran: Ran) -> list[float]:
    """For each session that ran, the seconds beyond those of its command."""
    found = []
    for label, seconds in _DONE.findall(ran.err):
        package, _, target = label.removeprefix("//").partition(":")
        facts = workspace.root / "out" / package / target / "agent.json"
        found.append(float(seconds) - json.loads(facts.read_text())["seconds"])
    return found


def _checks(workspace: CliWorkspace) -> None:
    """``kabuild-check``: compile and smoke, of kernels that differ from all before."""
    for task in CHECKED:
        name = task.rpartition("/")[2]
        _run(workspace, "build", f"//tasks/{task}:{name}.agent", "--agent=//agents:checks")
        transcript = workspace.root / f"out/tasks/{task}/{name}.agent/transcript.jsonl"
        texts = [json.loads(line)["text"] for line in transcript.read_text().splitlines()]
        said = [json.loads(text) for text in texts if text.startswith('{"seconds"')]
        wrong = next((answer["said"] for answer in said if answer["code"]), "")
        if wrong:
            raise SystemExit(f"kabuild-check of {task}: {wrong}")
        times = [answer["seconds"] for answer in said]
        _figure(f"kabuild-check {task}", times, f"first {times[0]:.2f} s")


def _again(workspace: CliWorkspace, tasks: int, trials: int) -> None:
    """The same line once more: nothing changed, so nothing runs."""
    found = sorted(path.parent for path in (REPOSITORY / "tasks").rglob("BUILD.toml"))[:tasks]
    labels = [f"//{path.relative_to(REPOSITORY).as_posix()}" for path in found]
    flags = ("--agent=//agents:comments", f"--trials={trials}", "-j2")
    start = time.perf_counter()
    first = _run(workspace, "test", *labels, *flags)
    built = time.perf_counter() - start
    times = []
    for _ in range(5):
        start = time.perf_counter()
        ran = _run(workspace, "test", *labels, *flags)
        times.append(time.perf_counter() - start)
        if ran.executed:
            raise SystemExit(f"ran again: {sorted(ran.executed)}")
    what = f"{len(labels)} tasks x {trials} trials"
    print(f"{what}, nothing cached  {built:.1f} s: {first.out.strip().splitlines()[-1]}")
    _figure(f"{what}, again", times, ran.out.strip().splitlines()[-1])


def _run(workspace: CliWorkspace, *arguments: str) -> Ran:
    """Call kabuild; kernels that fail are results, anything else ends the measurement."""
    ran = workspace.run(*arguments, timeout=1800)
    if ran.code not in {0, 3}:
        raise SystemExit(ran.out + ran.err)
    return ran


def _figure(what: str, times: Sequence[float], note: str = "") -> None:
    median, most = statistics.median(times), max(times)
    print(f"{what:52} {median:7.2f} s, at most {most:.2f} s of {len(times)}  {note}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
