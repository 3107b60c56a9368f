"""Real kernels, compiled, in real sandboxes, judged by the real script."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from judging_doubles import REFERENCE, SPEC

from tests.testkit.runtime import copy_built

ROOT = Path(__file__).parents[3]
DRIVER = ROOT / "toolchains" / "hip" / "driver" / "compile_hip.py"
TOOLS = ROOT / "rules" / "harness" / "tools"
KERNEL = """
#include <hip/hip_runtime.h>
#include <stdint.h>

__global__ void rows_of(const float* x, float* y, float scale, int64_t cols) {
  __shared__ float part[64];
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float top = -INFINITY;
  for (int64_t c = threadIdx.x; c < cols; c += 64) top = fmaxf(top, in[c] * scale);
  part[threadIdx.x] = top;
  __syncthreads();
  for (int i = 0; i < 64; ++i) top = fmaxf(top, part[i]);
  __syncthreads();
  float sum = 0;
  for (int64_t c = threadIdx.x; c < cols; c += 64) sum += expf(in[c] * scale - top);
  part[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 64; ++i) sum += part[i];
  for (int64_t c = threadIdx.x; c < COLS; c += 64) out[c] = expf(in[c] * scale - top) / sum;
}

extern "C" hipError_t softmax_f32(const float* x, float* y, float scale, int64_t rows,
                                  int64_t cols, hipStream_t stream) {
  rows_of<<<rows, 64, 0, stream>>>(x, y, scale, cols);
  return hipGetLastError();
}
"""
SOURCES = {
    "honest": KERNEL.replace("COLS", "cols"),
    "short": KERNEL.replace("COLS", "cols - 1"),
    "greedy": KERNEL.replace("COLS", "cols + (blockIdx.x + 1 == gridDim.x)"),
    "aligned": KERNEL.replace("COLS", "cols").replace("sum += part[i];", "sum += part[i];\n"
                                                      "  if (cols % 4) sum *= 2;"),
}  # fmt: skip
CONFIGS = [
    {"name": "f32 rows=8 cols=64", "dims": {"rows": 8, "cols": 64}, "dtype": "f32", "scalars": {}},
    {"name": "f32 rows=4 cols=96", "dims": {"rows": 4, "cols": 96}, "dtype": "f32", "scalars": {}},
]
# Imports what is slow once, then judges each directory that it is told of in a fork of itself.
WARM = """
import os, sys
sys.path.insert(0, sys.argv[1])
import torch, gate
for folder in map(str.strip, sys.stdin):
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.dup2(os.open("stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os._exit(gate.main(["spec.json"]))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
TORCH = {"abi": "torch", "path": "task/reference.py", "entry": "reference"}


def drive(*command):
    found = importlib.util.find_spec("ziglang")
    assert found is not None
    assert found.origin is not None
    compiler = f"--compiler=zig:{Path(found.origin).parent}"
    subprocess.run([sys.executable, *map(str, command), compiler], check=True, capture_output=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Runtime, runner and all kernels, compiled once."""
    folder = tmp_path_factory.mktemp("built")
    copy_built(folder)
    for name, source in SOURCES.items():
        (folder / f"{name}.hip").write_text(source)
        drive(DRIVER, "cpu", "kernel", folder / f"{name}.hip", "-o", folder / f"{name}.so")
    return folder


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The judge's files as an action finds them."""
    folder = tmp_path_factory.mktemp("action") / "tools"
    shutil.copytree(TOOLS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for module in ("limits", "namespaces", "rootfs", "seccomp"):
        shutil.copy(ROOT / "kabuild" / "sandbox" / f"{module}.py", folder)
    return folder


@pytest.fixture(scope="module")
def warm(tools):
    """Judges the directory that it is called with; returns the exit code."""
    command = [sys.executable, "-c", WARM, str(tools)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        folders, codes = server.stdin, server.stdout
        assert folders is not None
        assert codes is not None

        def run(folder):
            folders.write(f"{folder}\n")
            folders.flush()
            return int(codes.readline())

        yield run
        folders.close()


@pytest.fixture
def workplace(tmp_path, built, warm):
    """Judges in a working directory like an action's."""
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "reference.py").write_text(REFERENCE)
    for path in built.iterdir():
        shutil.copy(path, tmp_path)
    return Workplace(tmp_path, warm)


class Workplace:
    """The working directory of one action."""

    def __init__(self, folder, warm):
        self.folder = folder
        self.warm = warm

    def judge(self, gate, candidate, baseline=None, run=None, **changes):
        """Run one gate: its exit code, what it said, and the verdict or None."""
        spec = {
            **SPEC,
            "candidate": {"abi": "hip", "path": candidate, "entry": "softmax"},
            "baseline": baseline or {"abi": "hip", "path": "honest.so", "entry": "softmax"},
            "gate": gate,
            "libraries": ["libhipcpu.so"],
            "runner": "hip-runner",
            "reference": "task/reference.py",
            "space": {"dims": {"rows": [1, 4096], "cols": [1, 8192]}, "dtypes": ["f32"]},
            "configs": CONFIGS,
            **changes,
        }
        (self.folder / "spec.json").write_text(json.dumps(spec))
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        code = (run or self.warm)(self.folder)
        said = (self.folder / "stderr").read_text()
        path = self.folder / "out" / "verdict.json"
        return code, said, json.loads(path.read_bytes()) if path.exists() else None

    def output(self, name):
        return (self.folder / "out" / name).read_bytes()


def test_an_honest_kernel_passes_beside_itself_and_beside_pytorch(workplace):
    for baseline in (None, TORCH):
        code, said, verdict = workplace.judge("correctness", "honest.so", baseline)

        assert (code, said) == (0, "")
        assert verdict["verdict"] == "PASS", verdict["detail"]
        assert [case["verdict"] for case in verdict["cases"]] == ["PASS"] * 7


@pytest.mark.parametrize(
    ("kernel", "verdict", "reason"),
    [("short", "FAIL", "INCOMPLETE_OUTPUT"), ("greedy", "REJECTED", "OUT_OF_BOUNDS")],
)
def test_a_kernel_of_the_wrong_extent_fails_for_its_reason(workplace, kernel, verdict, reason):
    _, _, found = workplace.judge("correctness", f"{kernel}.so")

    assert (found["verdict"], found["reason"]) == (verdict, reason), found["detail"]


def test_a_kernel_for_aligned_shapes_fails_where_it_was_not_shown(workplace):
    policy = {"edges": 1}  # all dims least: one column is not aligned either
    _, _, found = workplace.judge("correctness", "aligned.so", policy=policy)
    stages = {case["stage"]: case["verdict"] for case in found["cases"]}
    assert stages["sweep"] == "PASS"
    assert stages["edges"] == "FAIL"

    _, _, found = workplace.judge("unseen", "aligned.so")
    assert (found["verdict"], found["reason"]) == ("FAIL", "WRONG_RESULT")
    assert found["quadrants"]["opt_regression"] > 0


def test_a_cold_process_gives_the_same_bytes(workplace, tools):
    def cold(folder):
        command = [sys.executable, str(tools / "gate.py"), "spec.json"]
        with (folder / "stderr").open("w") as said:
            return subprocess.run(command, cwd=folder, stderr=said, check=False).returncode

    for gate in ("correctness", "unseen"):
        workplace.judge(gate, "honest.so")
        first = workplace.output("verdict.json")
        workplace.judge(gate, "honest.so", run=cold)
        assert workplace.output("verdict.json") == first


def test_times_are_measured_and_every_sample_is_kept(workplace):
    code, said, verdict = workplace.judge("perf", "honest.so", policy={"max_processes": 3})

    assert (code, said) == (0, "")
    assert verdict["verdict"] == "PASS", verdict["detail"]
    assert all(0 < case["low"] <= case["speedup"] <= case["high"] for case in verdict["cases"])
    samples = json.loads(workplace.output("samples.json"))
    for name in verdict["configs"]:
        for side in ("candidate", "baseline"):
            assert [len(process) for process in samples["configs"][name][side]] == [2, 2, 2]
            assert [len(process) for process in samples["warm"][name][side]] == [1, 1, 1]
    assert all(0 < case["warm"]["low"] <= case["warm"]["high"] for case in verdict["cases"])


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"salt": 5}, 2, "gate.py: spec: 'salt' must be a string, got 5"),
        ({"gate": "score"}, 2, "gate.py: spec: unknown judging gate 'score'"),
        ({"runner": "no-such-runner"}, 3, "gate.py: machine: "),
        ({"reference": "task/none.py"}, 4, "task/none.py:1: the import raised FileNotF"),
    ],
)
def test_what_is_not_the_candidates_fault_gives_no_verdict(workplace, change, code, message):
    changes = {"gate": "correctness", **change}
    found, said, verdict = workplace.judge(candidate="honest.so", **changes)

    assert (found, verdict) == (code, None)
    assert said.startswith(message)
    assert said.count("\n") == 1
