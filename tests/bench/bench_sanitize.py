"""How many times as long instrumented kernels take: the baselines of HIP tasks on one thread.

python tests/bench/bench_sanitize.py

Each call is timed in a process of its own, plain and instrumented, on the same inputs; the least
of several runs counts. Compile times are those of one run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "toolchains" / "hip" / "cpu" / "driver" / "hipcpu.py"
COMPILER = f"--compiler=zig:{Path(sysconfig.get_path('platlib'), 'ziglang')}"

# Entry, elements of inputs and outputs, and dims, of one dtype.
CALLS = {
    "hip2hip/softmax": ("softmax_f32", (65536,), (65536,), (256, 256)),
    "hip2hip/scan": ("scan_f32", (65536,), (65536,), (65536,)),
    "hip2hip/gemm": ("gemm_f32", (16384, 16384), (16384,), (128, 128, 128)),
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
    subprocess.run([sys.executable, str(DRIVER), *arguments, COMPILER], check=True, cwd=folder)
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


def main() -> None:
    """Print one line a kernel."""
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


if __name__ == "__main__":
    main()
