"""What sanitizing costs, and whether it is silent about kernels that are right.

python tests/bench/bench_sanitize.py

First the baselines of three HIP tasks on one thread: each call is timed in a process of its own,
plain and instrumented, on the same inputs; the least of several runs counts. Compile times are
those of one run. Then the gate as a whole, on the experts and the baselines of all HIP tasks,
beside their correctness gate: seconds of both, and what the sanitizer found.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "toolchains" / "hip" / "driver" / "compile_hip.py"
COMPILER = f"--compiler=zig:{Path(sysconfig.get_path('platlib'), 'ziglang')}"

# Entry, elements of inputs and outputs, and dims, of one dtype.
CALLS = {
    "hip2hip/softmax": ("softmax_f32", (65536,), (65536,), (256, 256)),
    "hip2hip/scan": ("scan_f32", (65536,), (65536,), (65536,)),
    "hip2hip/gemm": ("gemm_f32", (16384, 16384), (16384,), (128, 128, 128)),
}
JUDGED = {
    "expert": ("//tasks/hip2hip/...", "//tasks/torch2hip/..."),
    "none": ("//tasks/hip2hip/...",),
}
CALL = """
import ctypes, sys, time
runtime, library, entry, inputs, outputs, dims = sys.argv[1:7]
rt = ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
function = ctypes.CDLL(library)[entry]
announce = getattr(rt, "hipcpu_sanitizer_buffer", None)
pointers = []
for sizes, initialised in ((inputs, 1), (outputs, 0)):
    for size in map(int, sizes.split(",")):
        tensor = (ctypes.c_float * size)()
        pointers.append(tensor)
        if announce:
            announce(tensor, ctypes.c_size_t(4 * size), b"t", initialised)
sizes = [ctypes.c_int64(int(dim)) for dim in dims.split(",")]
workspace = []
if hasattr(ctypes.CDLL(library), entry + "_workspace"):
    wanted = ctypes.CDLL(library)[entry + "_workspace"]
    wanted.restype = ctypes.c_size_t
    tensor = (ctypes.c_char * max(wanted(*sizes), 1))()
    workspace = [tensor]
    if announce:
        announce(tensor, ctypes.c_size_t(len(tensor)), b"w", 0)
best = float("inf")
for _ in range(5):
    started = time.perf_counter()
    status = function(*pointers, *sizes, *workspace, None)
    best = min(best, time.perf_counter() - started)
    assert status == 0, status
print(best)
"""


def compile_to(folder: Path, *arguments: str) -> float:
    """Run the driver; the seconds that it took."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, str(DRIVER), "cpu", *arguments, COMPILER], check=True, cwd=folder
    )
    return time.perf_counter() - started


def seconds(folder: Path, runtime: str, library: str, task: str) -> float:
    """The least time of a call, in a process of its own."""
    entry, *sizes = CALLS[task]
    numbers = [",".join(map(str, size)) for size in sizes]
    command = [sys.executable, "-c", CALL, str(folder / runtime), str(folder / library), entry]
    environment = {**os.environ, "KABUILD_CPU_WORKERS": "1"}
    done = subprocess.run(
        [*command, *numbers], check=True, capture_output=True, text=True, env=environment
    )
    assert "hipcpu-sanitizer" not in done.stderr, done.stderr
    return float(done.stdout)


def judge(store: str, agent: str) -> None:
    """Print what came of both gates for one side of all tasks."""
    command = [sys.executable, "-m", "kabuild", "test", f"--agent={agent}", "--json"]
    command += ["--gates=correctness,sanitize", "--jobs=1", *JUDGED[agent]]
    env = {**os.environ, "KABUILD_CACHE": store, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, check=False)
    entries = json.loads(done.stdout)["targets"]
    took = {
        gate: [entry["seconds"] for entry in entries if entry["gate"] == gate]
        for gate in ("correctness", "sanitize")
    }
    found = [e for e in entries if e["gate"] == "sanitize" and e["verdict"] != "PASS"]
    for entry in found:
        print(f"  {entry['label']}: {entry['verdict']} {entry['reason']}: {entry['summary']}")
    plain, checked = (statistics.median(took[gate]) for gate in ("correctness", "sanitize"))
    print(
        f"gate, {agent:6} of {len(took['sanitize'])} tasks: correctness {plain:.2f} s, sanitize "
        f"{checked:.2f} s (medians): {checked / plain:.2f} x; {len(found)} with findings"
    )


def main() -> None:
    """Print one line a kernel, then one line for each side of all tasks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_to(folder, "runtime", "-o", "plain.so")
        compile_to(folder, "runtime", "--sanitize", "-o", "checked.so")
        for task in CALLS:
            source = str(next((ROOT / "tasks" / task).glob("*.hip")))
            usual = compile_to(folder, "kernel", source, "-o", "k.so")
            instrumented = compile_to(folder, "kernel", "--sanitize", source, "-o", "s.so")
            plain = seconds(folder, "plain.so", "k.so", task)
            checked = seconds(folder, "checked.so", "s.so", task)
            print(
                f"{task:18} compile {usual:.2f} -> {instrumented:.2f} s, "
                f"call {plain * 1e3:.2f} -> {checked * 1e3:.0f} ms: {checked / plain:.0f} x"
            )
        for agent in JUDGED:
            judge(str(folder / "store"), agent)
    print("load", " ".join(f"{value:.1f}" for value in os.getloadavg()))


if __name__ == "__main__":
    main()
