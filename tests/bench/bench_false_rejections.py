"""How often honest work does not pass: experts, baselines, kernels of all sorts, time and again.

python tests/bench/bench_false_rejections.py [EVALUATIONS] [SECONDS] [--chunk=CHUNK] [--only=TEXT]

One evaluation is one run of one gate (correctness, perf or unseen) on one program of one task. The
programs are the experts and baselines of all tasks, the kernels in ``honest`` (autotuned, atomic,
persistent, of several kernels, a library-free matrix product) and the benign twins of
``tests/cheats``, whose threads, streams and workspaces look like those of a cheat.
Every sweep has a salt of its own, hence other seeds, inputs and unseen configs; perf has a budget
of SECONDS (2 without), so that it costs less. The baselines of torch2hip are no kernels, and are
judged as baselines only. Where the machine fails nobody is judged: such runs are shown and do not
count. CHUNK targets are judged by one command; after each chunk the count is printed, and the
bench ends once there are as many evaluations as asked for (1000). With --only it judges the targets
whose labels contain TEXT, such as ``triton``, which needs no compiler of HIP.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.cheats.candidates import declare, twins
from tests.tasks.declared import all_tasks
from tests.testkit.cli import CliWorkspace

HONEST = Path(__file__).parent / "honest"
JUDGING = ("correctness", "perf", "unseen")
SIDES: Mapping[str, tuple[str, ...]] = {
    "expert": ("//...", *(f"-{task.label}" for task in all_tasks() if not task.has_expert)),
    "none": ("//tasks/...", "-//tasks/torch2hip/..."),
}


def cheapened(folder: Path, seconds: float) -> Path:
    """A copy of the workspace whose perf gates have a budget of ``seconds``."""
    shutil.copy(ROOT / "WORKSPACE.toml", folder)
    shutil.copytree(ROOT / "tasks", folder / "tasks")
    add_honest(folder)
    for declared in folder.glob("*/*/*/BUILD.toml"):
        policy = f"]]\nperf = {{ budget_seconds = {seconds} }}\n"
        declared.write_text(declared.read_text().replace("]]\n", policy, 1))
    for language in ("hip", "triton"):
        for twin in twins(language):
            declare(CliWorkspace(folder, folder), twin)
    return folder


def add_honest(folder: Path) -> None:
    """Each kernel in ``honest`` as the expert of a copy of its task."""
    for kernel in sorted(HONEST.glob("*2*/*/*.*")):
        family, task = kernel.parts[-3:-1]
        package = folder / "honest" / family / kernel.stem
        shutil.copytree(ROOT / "tasks" / family / task, package)
        shutil.copy(kernel, package / "solutions/expert" / f"{task}{kernel.suffix}")
        declared = (package / "BUILD.toml").read_text()
        renamed = re.sub(r"(?m)^(name +=) .*", rf'\1 "{kernel.stem}"', declared, count=1)
        (package / "BUILD.toml").write_text(renamed)


def kabuild(workspace: Path, *arguments: str) -> str:
    """Run a command in ``workspace``: its standard output, or this program's end if there is none.

    Rejected targets make the command fail, so its exit code says nothing here.
    """
    done = subprocess.run(
        [sys.executable, "-m", "kabuild", *arguments],
        cwd=workspace,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        sys.exit(f"kabuild {arguments[0]} printed nothing:\n{done.stderr}")
    return done.stdout


def chunks(workspace: Path, size: int, only: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Sides with up to ``size`` targets each, without end; each sweep of all has a new salt.

    The order is random, so that a sweep which ends early is a sample of all kinds of kernels.
    """
    labels = {
        side: [
            label
            for label in kabuild(workspace, "query", "--", *SIDES[side]).split()
            if only in label
        ]
        for side in SIDES
    }
    while True:
        (workspace / "salt").write_text(secrets.token_hex(16))
        sweep = [
            (side, tuple(targets[start : start + size]))
            for side, listed in labels.items()
            for targets in [random.sample(listed, len(listed))]
            for start in range(0, len(targets), size)
        ]
        yield from random.sample(sweep, len(sweep))


def judge(workspace: Path, side: str, targets: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """Judge ``targets`` once: the entries of the three gates."""
    flags = (f"--agent={side}", f"--unseen_salt_file={workspace / 'salt'}", "--json")
    gates = "--gates=compile,correctness,perf,unseen"
    printed = kabuild(workspace, "test", *flags, gates, "--", *targets)
    return [entry for entry in json.loads(printed)["targets"] if entry["gate"] in JUDGING]


def main(wanted: int, seconds: float, size: int, only: str) -> int:
    """Print every verdict that is not PASS, and after each chunk the count by reason."""
    outcomes: Counter[str] = Counter()
    gates: Counter[str] = Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        workspace = cheapened(Path(name), seconds)
        for side, targets in chunks(workspace, size, only):
            for entry in judge(workspace, side, targets):
                what = " ".join(filter(None, (entry["verdict"], entry["reason"])))
                if entry["verdict"] != "INFRA":
                    outcomes[what] += 1
                    gates[entry["gate"]] += 1
                if entry["verdict"] != "PASS":
                    print(f"  {side} {entry['label']}: {what}: {entry['summary']}")
            minutes = (time.monotonic() - started) / 60
            print(f"{outcomes.total()} evaluations, {minutes:.0f} min: {dict(outcomes)}")
            sys.stdout.flush()
            if outcomes.total() >= wanted:
                break
    total = outcomes.total()
    print(f"{total} honest evaluations ({dict(gates)}): {total - outcomes['PASS']} did not pass")
    return 0 if total == outcomes["PASS"] else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("evaluations", type=int, nargs="?", default=1000, help="at least (1000)")
    parser.add_argument("seconds", type=float, nargs="?", default=2.0, help="for a perf gate (2)")
    parser.add_argument("--chunk", type=int, default=16, help="targets of one command (16)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only labels that contain TEXT")
    options = parser.parse_args()
    sys.exit(main(options.evaluations, options.seconds, options.chunk, options.only))
