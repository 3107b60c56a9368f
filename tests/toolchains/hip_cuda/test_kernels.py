"""What is compiled, and that it is the same bytes whenever it is the same program."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from elf import read_symbols

from tests.testkit.compilations import Completed
from tests.toolchains.hip_cuda.support import HERE, ROOT, CudaDriver

SOFTMAX = ROOT / "tasks" / "hip2hip" / "softmax" / "softmax.hip"
SMALL = """\
#include <hip/hip_runtime.h>

__global__ void __launch_bounds__(128) twice(float* x, int n) {
  __shared__ float copy[128];
  copy[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) x[threadIdx.x] = 2 * copy[n - threadIdx.x];
}

extern "C" hipError_t run(float* x, int n, hipStream_t stream) {
  twice<<<1, 128, 0, stream>>>(x, n);
  return hipGetLastError();
}
"""


@dataclass(frozen=True)
class Compiled:
    """A library, and what is told of its kernels."""

    library: Path
    kernels: list[dict[str, Any]]


@pytest.fixture(scope="module")
def small(cuda_driver: CudaDriver, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """``SMALL``, compiled as it is."""
    source = tmp_path_factory.mktemp("small") / "small.hip"
    source.write_text(SMALL)
    library = source.with_suffix(".so")
    return Compiled(library, cuda_driver.build(source, library))


def test_everything_that_hip_has_and_cuda_has_not(cuda_driver: CudaDriver, tmp_path: Path) -> None:
    kernels = cuda_driver.build(
        HERE / "kernels" / "dialect.hip", tmp_path / "k.so", "--entry=everything"
    )
    assert len(kernels) == 6  # one of them twice, and one of the header's


def test_comments_lines_and_directories_change_no_byte(
    cuda_driver: CudaDriver, tmp_path: Path, small: Compiled
) -> None:
    cuda_driver = replace(cuda_driver, anew=True)
    commented = SMALL.replace(";", "; // it ends here\n\n").replace("(", "( /* opened */ ")
    usual = small.library.read_bytes()
    for number, text in enumerate((SMALL, commented)):
        source = tmp_path / str(number) / f"source{number}.hip"
        source.parent.mkdir()
        source.write_text(text)
        cuda_driver.build(source, source.with_suffix(".so"))
        assert source.with_suffix(".so").read_bytes() == usual
    changed = tmp_path / "changed.hip"
    changed.write_text(SMALL.replace("2 *", "3 *"))
    cuda_driver.build(changed, tmp_path / "changed.so")
    assert (tmp_path / "changed.so").read_bytes() != usual


def test_code_that_is_watched_names_the_authors_lines(
    cuda_driver: CudaDriver, tmp_path: Path, small: Compiled
) -> None:
    """It takes what it takes otherwise, and comments change the table only."""
    commented = f"// what follows is moved by a line\n{SMALL}"
    made = []
    for name, text in (("plain", SMALL), ("moved", commented)):
        source = tmp_path / f"{name}.hip"
        source.write_text(text)
        kernels = cuda_driver.build(source, tmp_path / f"{name}.so", "--sanitize")
        table = json.loads((tmp_path / f"{name}.places.json").read_text())
        made.append(((tmp_path / f"{name}.so").read_bytes(), table["files"]["kernel.hip"]))
    (plain, where), (moved, elsewhere) = made
    assert kernels == small.kernels
    assert plain == moved != small.library.read_bytes()
    assert (where["name"], elsewhere["name"]) == ("plain.hip", "moved.hip")
    assert [tokens[0][1] + 1 for tokens in where["lines"]] == [
        tokens[0][1] for tokens in elsewhere["lines"]
    ]


def test_what_a_kernel_takes(small: Compiled) -> None:
    (kernel,) = small.kernels
    assert "twice" in kernel["name"]
    assert (kernel["arch"], kernel["wave"]) == ("sm_90", 32)
    assert (kernel["shared_bytes"], kernel["spills"], kernel["threads"]) == (512, 0, 128)
    assert 0 < kernel["registers"] <= 64
    assert kernel["code_bytes"] > 0
    assert (kernel["occupancy"], kernel["occupancy_most"]) == (64, 64)


def test_spills_are_seen(cuda_driver: CudaDriver, tmp_path: Path) -> None:
    """Four blocks of a thousand threads leave sixteen registers a thread."""
    source = tmp_path / "spilling.hip"
    source.write_text("""\
#include <hip/hip_runtime.h>
__global__ void __launch_bounds__(1024, 2) many(float* x) {
  float values[64];
  for (int i = 0; i < 64; ++i) values[i] = x[i * 1024 + threadIdx.x];
  for (int i = 0; i < 64; ++i) {
    float sum = 0;
    for (int j = 0; j < 64; ++j) sum += values[j] * values[i ^ j];
    x[i * 1024 + threadIdx.x] = sum;
  }
}
extern "C" hipError_t run(float* x) { many<<<1, 1024>>>(x); return hipGetLastError(); }
""")
    (kernel,) = cuda_driver.build(source, tmp_path / "spilling.so")
    assert kernel["spills"] > 0
    assert kernel["registers"] == 32


def test_only_the_entries_are_exported(cuda_driver: CudaDriver, tmp_path: Path) -> None:
    cuda_driver.build(SOFTMAX, tmp_path / "softmax.so", "--entry=softmax_f32")
    image = (tmp_path / "softmax.so").read_bytes()
    symbols = [symbol for symbol in read_symbols(image) if symbol.defined]
    assert {symbol.name for symbol in symbols} == {"softmax_f32", "softmax_f16"}


def test_it_loads_after_the_runtime_and_says_that_there_is_no_device(
    cuda_driver: CudaDriver, tmp_path: Path, small: Compiled
) -> None:
    """Without a driver the runtime itself answers: 35 or 100."""
    runtime = tmp_path / "libcudart.so.13"
    cuda_driver.runtime(runtime)
    alone = f"import ctypes; ctypes.CDLL({str(small.library)!r})"
    assert "undefined symbol" in _python(alone).stderr
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a device")
    loaded = _python(
        f"import ctypes; ctypes.CDLL({str(runtime)!r}, mode=ctypes.RTLD_GLOBAL)\n"
        f"print(ctypes.CDLL({str(small.library)!r}).run(None, 1, None))"
    )
    assert loaded.stdout.strip() in {"35", "100"}, loaded.stderr


def _python(code: str) -> Completed:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_code_has_its_processors_own_features(cuda_driver: CudaDriver, tmp_path: Path) -> None:
    source = tmp_path / "own.hip"
    source.write_text(
        "#include <hip/hip_runtime.h>\n"
        "#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)\n"
        "#error other code\n"
        "#endif\n"
        "__global__ void f() {\n"
        '  asm volatile("wgmma.fence.sync.aligned;");\n'
        "}\n"
        'extern "C" void run() { f<<<1, 1>>>(); }\n'
    )

    for arch in ("sm_90", "sm_90a"):
        cuda_driver.build(source, tmp_path / "own.so", arch=arch)
    other = cuda_driver.run(source, tmp_path / "other.so", arch="sm_100")

    assert other.returncode == 1
    assert "3:2: error:" in other.stderr
    assert "other code" in other.stderr
