"""Kernels that are counted: the programs that build them, and a process that calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from analyze.counts import Counts, read_counts
from sanitize.places import Places

from tests.toolchains.hip.support import HIP, ZIG

COUNTING = HIP / "cpu" / "counting"
TERMS = HIP.parents[1] / "rules" / "harness" / "tools"

# Tensors that begin at odd multiples of 4 bytes, as guarded ones do; a device aligns them.
CALL = """
import ctypes, sys
runtime, library, elements = sys.argv[1:]
rt = ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
kernels = ctypes.CDLL(library)
pointers = []
for name in (b"x", b"y", b"counts"):
    room = (ctypes.c_float * (int(elements) + 8))()
    pointers.append((room, ctypes.c_void_p(ctypes.addressof(room) + 16)))
    rt.hipcpu_sanitizer_buffer(pointers[-1][1], ctypes.c_size_t(4 * int(elements)), name, 1)
assert kernels.run(*(pointer for _, pointer in pointers)) == 0
"""


def command(program: str, *arguments: str | Path, cwd: Path) -> str:
    """Run one of the counters' programs; what it printed."""
    done = subprocess.run(
        [sys.executable, program, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(TERMS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def build_runtime(folder: Path) -> Path:
    """The runtime that counts."""
    library = folder / "libhipcpu.so"
    program = str(COUNTING / "counting_runtime.py")
    command(program, "-o", library, f"--compiler=zig:{ZIG}", cwd=folder)
    return library


def counted(
    folder: Path, runtime: Path, source: Path, wave: int = 64, elements: int = 8000
) -> Counts:
    """What ``run(x, y, counts)`` of a source does, whose tensors have so many elements each."""
    compiler = f"--compiler=zig:{ZIG}"
    kernel = str(COUNTING / "counted_kernel.py")
    command(kernel, f"--source={source}", f"--wave={wave}", compiler, cwd=folder)
    out = folder / "out"
    said = command("-c", CALL, runtime, out / "kernel.so", str(elements), cwd=folder)
    return read_counts(said, Places.read(out / "kernel.places.json"))
