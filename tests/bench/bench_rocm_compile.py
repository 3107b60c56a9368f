"""What all tasks' experts take of AMD's processors, and how long compiling them does.

    python tests/bench/bench_rocm_compile.py                       # the five of the table
    python tests/bench/bench_rocm_compile.py gfx942 --json results/rocm/compile.json

Each processor's kernels are compiled by one ``kabuild build '//tasks/...:*.compile'`` with one job
and an empty store. No device is needed, and nothing is run on one.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
PROCESSORS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
PARTS = "//tasks/...:*.compile"
FIGURES = (
    *("name", "registers", "scalar_registers", "accumulation_registers", "shared_bytes"),
    *("spills", "stack_bytes", "occupancy", "occupancy_most", "occupancy_limit", "code_bytes"),
    *("wave", "num_warps", "num_stages"),
)


def main(arguments: Sequence[str]) -> int:
    """Compile for each processor; print the table; keep it as data where asked."""
    parser = argparse.ArgumentParser(description="compile all tasks for AMD's processors")
    parser.add_argument("processors", nargs="*", default=PROCESSORS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here, as data")
    options = parser.parse_args(arguments)
    found = {name: _compile(name) for name in options.processors}
    _print_tasks(found)
    _print_worst(found)
    for name, one in found.items():
        _print_kernels(name, one)
    if options.json:
        document = {"compilers": _compilers(), "machine": _machine(), "processors": found}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    return 0


def _compile(processor: str) -> dict[str, Any]:
    """Seconds and kernels of each task, and what the whole call took."""
    load, before, began = os.getloadavg()[0], os.times(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events.jsonl")
        command = [sys.executable, "-m", "kabuild", "build", PARTS, f"--platform=rocm:{processor}"]
        done = subprocess.run(
            [*command, "--jobs=1", "--keep_going", f"--events={events}"],
            env={**os.environ, "KABUILD_CACHE": f"{folder}/store"},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        print(f"{processor}: {done.stdout.splitlines()[-1]}", file=sys.stderr)
        settled = [json.loads(line) for line in events.read_text().splitlines()]
    after = os.times()
    used = after.children_user + after.children_system
    return {
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(used - before.children_user - before.children_system, 1),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "tasks": dict(_task(event) for event in settled if event.get("mnemonic") == "Compile"
                      and event["event"] == "action_settled"),
    }  # fmt: skip


def _task(event: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    package, _, name = event["label"].removeprefix("//").partition(":")
    path = REPOSITORY / "out" / package / name / "verdict.json"
    verdict = json.loads(path.read_text())
    return package.removeprefix("tasks/"), {
        "seconds": round(event["seconds"], 2),
        "verdict": verdict["verdict"],
        "summary": verdict["summary"],
        "kernels": [
            {figure: kernel[figure] for figure in FIGURES if figure in kernel}
            for kernel in verdict["kernels"]
        ],
    }


def _print_tasks(found: dict[str, Any]) -> None:
    """Seconds of each task and processor."""
    print("| compile seconds |", " | ".join(found), "|")
    print("|---|" + "---|" * len(found))
    for task in next(iter(found.values()))["tasks"]:
        each = (f"{one['tasks'][task]['seconds']:.1f}" for one in found.values())
        print(f"| {task} |", " | ".join(each), "|")
    for label, key in (("all, wall", "seconds"), ("all, CPU", "cpu_seconds"), ("load", "load")):
        print(f"| {label} |", " | ".join(str(one[key]) for one in found.values()), "|")


def _print_worst(found: dict[str, Any]) -> None:
    """Of each task's kernels the one that fewest waves fit of, on each processor."""
    print("| VGPR / SGPR / LDS / spills / occupancy / code |", " | ".join(found), "|")
    print("|---|" + "---|" * len(found))
    for task in next(iter(found.values()))["tasks"]:
        print(f"| {task} |", " | ".join(_worst(one["tasks"][task]) for one in found.values()), "|")


def _worst(task: dict[str, Any]) -> str:
    kernel = min(task["kernels"], key=lambda kernel: (kernel["occupancy"], -kernel["registers"]))
    return (
        f"{kernel['registers']} / {kernel['scalar_registers']} / {kernel['shared_bytes']} / "
        f"{kernel['spills']} / {kernel['occupancy']} of {kernel['occupancy_most']} / "
        f"{kernel['code_bytes']}"
    )


def _print_kernels(processor: str, one: dict[str, Any]) -> None:
    """Every kernel of one processor."""
    print(f"\n{processor}\n{'vgpr':>5}{'sgpr':>5}{'agpr':>5}{'lds':>7}{'spill':>6}{'occ':>7}"
          f"{'code':>7}  limit             kernel")  # fmt: skip
    for task, said in one["tasks"].items():
        for kernel in said["kernels"]:
            waves = f"{kernel['occupancy']}/{kernel['occupancy_most']}"
            print(
                f"{kernel['registers']:5}{kernel['scalar_registers']:5}"
                f"{kernel['accumulation_registers']:5}{kernel['shared_bytes']:7}"
                f"{kernel['spills']:6}{waves:>7}{kernel['code_bytes']:7}"
                f"  {kernel['occupancy_limit']:17} {task}: {kernel['name']}"
            )


def _compilers() -> dict[str, str]:
    """What compiled: Zig's clang the HIP kernels, Triton's LLVM the Triton ones."""
    zig = Path(sysconfig.get_path("platlib"), "ziglang", "zig")
    said = subprocess.run(
        [str(zig), "clang", "--version"], capture_output=True, text=True, check=True
    )
    versions = {name: importlib.metadata.version(name) for name in ("ziglang", "triton")}
    return {"clang": said.stdout.splitlines()[0].partition(" (")[0], **versions}


def _machine() -> dict[str, Any]:
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "device": "none",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
