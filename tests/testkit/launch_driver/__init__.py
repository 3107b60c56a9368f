"""GPUs' drivers for the tests of the launch filter: they have every name and launch nothing.

They stand for what this machine lacks. The filters before them are the real ones, and so are the
images: kernels that Triton's compiler has made.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.testkit.c_compiler import compile_library

ROOT = Path(__file__).parents[3]
BEHIND = "libkabuild-driver.so"
_HERE = Path(__file__).parent
_NATIVE = ROOT / "toolchains/hip/host/native.py"
_TOOLS = ROOT / "rules/harness/tools"


@dataclass(frozen=True)
class Vendor:
    """Whose driver it is.

    Attributes:
        library: the driver's name, and that of the filter.
        filtering: the filter's own directory.
        source: the double's.
        result: what the driver's functions return.
        names: all of them, by the vendor's headers.
        flags: the linker's for the double.
    """

    library: str
    filtering: str
    source: str
    result: str
    names: Callable[[], tuple[str, ...]]
    flags: tuple[str, ...] = ()

    def build_front(self, folder: Path) -> Path:
        """The launch filter, built as its rule does, with a driver behind it."""
        front = folder / self.library
        parts = [str(_TOOLS / part) for part in ("launch_filter", self.filtering)]
        compiler = f"--compiler=zig:{package('ziglang')}"
        command = [sys.executable, str(_NATIVE), "front", f"--before={BEHIND}", *parts]
        _run([*command, "-o", str(front), compiler])
        self.build_driver(folder / BEHIND)
        return front

    def build_driver(self, path: Path) -> Path:
        """The double, with all other names as functions that do nothing."""
        written = (_HERE / self.source).read_text()
        own = set(re.findall(r"^\S.*?\b(\w+)\(", written, re.MULTILINE))
        rest = "".join(
            f"{self.result} {name}(void) {{ return 0; }}\n"
            for name in self.names()
            if name not in own
        )
        source = path.with_suffix(".c")
        source.write_text(f"{written}\n{rest}")
        return compile_library(path, [str(source)], f"-Wl,-soname,{self.library}", *self.flags)


def package(name: str) -> Path:
    """Where an installed package is."""
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0])


@functools.cache
def names_of_cuda() -> tuple[str, ...]:
    """The functions of ``cuda.h``, as the pinned Triton has it, with all their versions."""
    text = (package("triton") / "backends/nvidia/include/cuda.h").read_text()
    declared = set(re.findall(r"CUDAAPI (cu[A-Z]\w+)\(", text))
    renamed = set(re.findall(r"#define\s+cu\w+\s+(cu[A-Z]\w+)", text))
    per_thread = set(re.findall(r"__CUDA_API_PTSZ\((cu\w+)\)", text))
    return tuple(sorted({*declared, *renamed, *(f"{name}_ptsz" for name in per_thread)}))


@functools.cache
def names_of_hip() -> tuple[str, ...]:
    """The functions of HIP, as the headers in the pinned Triton name them."""
    headers = HIP_HEADERS / "hip"
    of_threads = "amd_detail/amd_hip_runtime_pt_api.h"
    declared, traced, renamed = (
        re.findall(pattern, (headers / header).read_text(), re.MULTILINE)
        for header, pattern in (
            ("hip_runtime_api.h", r"^hipError_t (hip\w+)\("),
            ("amd_detail/hip_prof_str.h", r"HIP_API_ID_(hip\w+) ="),
            (of_threads, r"__HIP_API_SPT\((hip\w+)\)"),
        )
    )
    return tuple(sorted({*declared, *traced, *(f"{name}_spt" for name in renamed)}))


HIP_HEADERS = package("triton") / "backends/amd/include"
CUDA = Vendor("libcuda.so.1", "launch_filter_cuda", "cuda_driver.c", "CUresult", names_of_cuda)
ROCM = Vendor(
    "libamdhip64.so",
    "launch_filter_rocm",
    "hip_runtime.c",
    "hipError_t",
    names_of_hip,
    ("-Wl,-Bsymbolic",),  # its own functions find each other, as those of HIP's runtime do
)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
