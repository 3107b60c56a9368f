"""Seconds to compile one HIP kernel for the CPU, against a torch extension of the same function.

    python tests/bench/bench_compile.py            # our driver: zig, and g++ where present
    python tests/bench/bench_compile.py --torch    # also torch.utils.cpp_extension.load

``--torch`` needs g++, and installs ninja and setuptools into a temporary directory. The torch
side is measured cold, as it is for every new or edited source; ours too: it keeps no cache.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

DRIVER = Path(__file__).resolve().parents[2] / "toolchains" / "hip" / "driver" / "compile_hip.py"
ZIG = Path(sysconfig.get_path("platlib"), "ziglang")

HIP = """
#include <hip/hip_runtime.h>

__global__ void softmax_rows(const float* x, float* y, int cols) {
  __shared__ float partial[256];
  const float* in = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;
  const int t = threadIdx.x;
  float largest = -INFINITY;
  for (int i = t; i < cols; i += 256) largest = fmaxf(largest, in[i]);
  partial[t] = largest;
  __syncthreads();
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) partial[t] = fmaxf(partial[t], partial[t + k]);
    __syncthreads();
  }
  largest = partial[0];
  __syncthreads();
  float sum = 0.0f;
  for (int i = t; i < cols; i += 256) sum += expf(in[i] - largest);
  partial[t] = sum;
  __syncthreads();
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) partial[t] += partial[t + k];
    __syncthreads();
  }
  for (int i = t; i < cols; i += 256) out[i] = expf(in[i] - largest) / partial[0];
}

extern "C" hipError_t softmax(const float* x, float* y, int64_t rows, int64_t cols,
                              hipStream_t stream) {
  softmax_rows<<<rows, 256, 0, stream>>>(x, y, cols);
  return hipGetLastError();
}
"""

EXTENSION = """
#include <torch/extension.h>

torch::Tensor softmax(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int64_t cols = x.size(1);
  for (int64_t row = 0; row < x.size(0); ++row) {
    const float* in = x.data_ptr<float>() + row * cols;
    float* out = y.data_ptr<float>() + row * cols;
    float largest = -INFINITY;
    for (int64_t i = 0; i < cols; ++i) largest = std::max(largest, in[i]);
    float sum = 0.0f;
    for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[i] - largest);
    for (int64_t i = 0; i < cols; ++i) out[i] = std::exp(in[i] - largest) / sum;
  }
  return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("softmax", &softmax); }
"""

LOAD = """
import sys, time
from torch.utils import cpp_extension
start = time.perf_counter()
cpp_extension.load("bench_softmax", [sys.argv[1]], build_directory=sys.argv[2])
print(time.perf_counter() - start)
"""


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", action="store_true", help="measure torch's extensions too")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        seconds = {"zig": _ours(f"zig:{ZIG}", directory, options.runs)}
        if shutil.which("g++"):
            seconds["g++"] = _ours("cxx:g++", directory, options.runs)
        for compiler, taken in seconds.items():
            print(f"hipcpu with {compiler:4} {taken:7.2f} s")
        if options.torch:
            taken = _torch(directory)
            print(f"torch extension  {taken:7.2f} s")
            for compiler, ours in seconds.items():
                print(f"torch / {compiler:4}     {taken / ours:7.0f} x")


def _ours(compiler: str, directory: Path, runs: int) -> float:
    source = directory / "softmax.hip"
    source.write_text(HIP)
    command = [sys.executable, str(DRIVER), "cpu", "kernel", str(source), "--compiler", compiler]
    command += ["-o", str(directory / "softmax.so"), "--entry", "softmax"]
    return _median(lambda: subprocess.run(command, check=True), runs)


def _torch(directory: Path) -> float:
    """One cold build, without the import of torch."""
    tools = directory / "tools"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(tools)]
    subprocess.run([*pip, "ninja", "setuptools"], check=True)
    source, build = directory / "softmax.cpp", directory / "build"
    source.write_text(EXTENSION)
    build.mkdir()
    environment = {"PATH": f"{tools}/bin:/usr/bin:/bin", "PYTHONPATH": str(tools)}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(source), str(build)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.split()[-1])


def _median(function: Callable[[], object], runs: int) -> float:
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


if __name__ == "__main__":
    main(sys.argv[1:])
