"""What all tasks' experts take of AMD's processors, and how long compiling them does.

    python tests/bench/bench_rocm_compile.py                       # the five of the table
    python tests/bench/bench_rocm_compile.py gfx942 --json FILE
    python tests/bench/bench_rocm_compile.py --refresh             # all that results/rocm has

Each processor's kernels are compiled by one ``kabuild build '//tasks/...:*.compile'`` with one job
and an empty store. No device is needed, and nothing is run on one.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "results" / "rocm"
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
    parser.add_argument("--refresh", action="store_true", help="data and page of results/rocm")
    options = parser.parse_args(arguments)
    found = {name: _compile(name) for name in options.processors}
    print("\n".join([_head("compile seconds", found), *seconds_of(found)]))
    print(
        "\n".join([_head("VGPR / SGPR / LDS / spills / occupancy / code", found), *worst_of(found)])
    )
    for name, one in found.items():
        _print_kernels(name, one)
    if options.refresh:
        _keep(found, RESULTS / "compile.json")
        page = RESULTS / "README.md"
        page.write_text(_refreshed(page.read_text(), [seconds_of(found), worst_of(found)]))
    if options.json:
        _keep(found, options.json)
    return 0


def _keep(found: dict[str, Any], path: Path) -> None:
    """Everything, as data."""
    document = {"compilers": _compilers(), "machine": _machine(), "processors": found}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def _refreshed(page: str, tables: list[list[str]]) -> str:
    """The page with these rows in its tables, and the revision that they are of."""
    lines, rest, inside = [], list(tables), False
    for line in page.splitlines():
        if line.startswith("|---"):
            lines += [line, *rest.pop(0)]
        elif not (inside and line.startswith("|")):
            lines.append(line)
        inside = line.startswith("|---") or (inside and line.startswith("|"))
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    text = re.sub(r"(compilers at) \w+", rf"\1 {head.stdout.strip()}", "\n".join(lines))
    return f"{text}\n"


def _compile(processor: str) -> dict[str, Any]:
    """Seconds and kernels of each task, and what the whole call took."""
    load, before, began = os.getloadavg()[0], os.times(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events.jsonl")
        command = [sys.executable, "-m", "kabuild", "build", PARTS, f"--platform=rocm:{processor}"]
        command += ["--test_tag_filters=starter"]
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
        "kernels": figures_of(verdict),
    }


def figures_of(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    """What is kept of each kernel of a compile gate."""
    return [{key: one[key] for key in FIGURES if key in one} for one in verdict["kernels"]]


def _head(title: str, found: dict[str, Any]) -> str:
    return f"| {title} | " + " | ".join(found) + " |\n|---|" + "---|" * len(found)


def _row(title: str, cells: Iterable[object]) -> str:
    return f"| {title} | " + " | ".join(map(str, cells)) + " |"


def seconds_of(found: dict[str, Any]) -> list[str]:
    """Rows: seconds of each task and processor, and what the whole calls took."""
    rows = [
        _row(task, (f"{one['tasks'][task]['seconds']:.1f}" for one in found.values()))
        for task in next(iter(found.values()))["tasks"]
    ]
    rows += [
        _row(f"all, {name}", (one[key] for one in found.values()))
        for name, key in (("wall", "seconds"), ("CPU", "cpu_seconds"))
    ]
    loads = (", ".join(map(str, one["load"])) for one in found.values())
    return [*rows, _row("load at start, end", loads)]


def worst_of(found: dict[str, Any]) -> list[str]:
    """Rows: of each task's kernels the one that fewest waves fit of, on each processor."""
    return [
        _row(task, (_worst(one["tasks"][task]) for one in found.values()))
        for task in next(iter(found.values()))["tasks"]
    ]


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
