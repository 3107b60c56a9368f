"""Workspaces for tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace, copy_store
from tests.testkit.runtime import add_runtime, judged_store

TASK = """\
[[hip2hip]]
name      = "double"
kernel    = "double.hip"
reference = "reference.py"
brief     = "y = 2 x."
entry     = "twice"
inputs    = { x = "T[n]" }
outputs   = { y = "T[n]" }
dims      = { n = "1..65536" }
dtypes    = ["f32"]
configs   = [ { n = 1048 } ]
flops     = "n"
"""

KERNEL = """\
#include <hip/hip_runtime.h>

__global__ void twice(const float* x, float* y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}

extern "C" hipError_t twice_f32(const float* x, float* y, int64_t n, hipStream_t stream) {
  twice<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
  return hipGetLastError();
}
"""

REFERENCE = """\
import torch


def inputs(config, generator):
    return {"x": torch.randn(config["n"], generator=generator, dtype=config["dtype"])}


def reference(x, **_):
    return {"y": 2 * x}
"""

QUICK = """\
correctness = { call_seconds = 0.2, edges = 1, repeats = 2, distributions = ["default"] }
perf        = { processes = 3, samples = 2, budget_seconds = 0.1, clock_ms = 1000.0 }
"""
"""A policy for ``TASK`` under which judging takes moments; no busy machine upsets its clock."""


def declare(workspace: CliWorkspace, package: str, *, solution: str = KERNEL) -> None:
    """Write one quick task like ``//double``, with a solution for agent ``expert``."""
    name = package.rpartition("/")[2]
    workspace.write(f"{package}/BUILD.toml", TASK.replace('"double"', f'"{name}"') + QUICK)
    workspace.write(f"{package}/double.hip", KERNEL)
    workspace.write(f"{package}/reference.py", REFERENCE)
    workspace.write(f"{package}/solutions/expert/double.hip", solution)


@pytest.fixture(scope="session")
def runtime_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has the HIP runtime, the native runner and ``KERNEL`` as a baseline.

    Tests copy it and leave it alone.
    """
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("runtime"))
    add_runtime(workspace)
    declare(workspace, "double")
    made = workspace.run("build", "//double:double.baseline.compile")
    assert made.code == 0, made.err
    return workspace.store


@pytest.fixture
def quick(tmp_path: Path, runtime_store: Path) -> CliWorkspace:
    """A workspace with one quick task, ``//double``; its store has the runtime."""
    workspace = CliWorkspace.make(tmp_path)
    copy_store(runtime_store, workspace.store)
    declare(workspace, "double")
    return workspace


@pytest.fixture(scope="module")
def module_workspace(tmp_path_factory: pytest.TempPathFactory, runtime_store: Path) -> CliWorkspace:
    """An empty workspace for what all tests of a module look at; its store has the runtime."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("module"))
    copy_store(runtime_store, workspace.store)
    return workspace


@pytest.fixture(scope="module")
def kept_workspace(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """An empty workspace whose store is kept between test runs: for verdicts, not for times."""
    return CliWorkspace.make(tmp_path_factory.mktemp("kept"), judged_store())


@pytest.fixture
def workspace(tmp_path: Path) -> CliWorkspace:
    """A workspace without packages."""
    return CliWorkspace.make(tmp_path)


@pytest.fixture
def task(workspace: CliWorkspace) -> CliWorkspace:
    """A workspace with one small task, ``//double``."""
    workspace.write("double/BUILD.toml", TASK)
    workspace.write("double/double.hip", KERNEL)
    workspace.write("double/reference.py", REFERENCE)
    workspace.write("double/solutions/expert/double.hip", KERNEL)
    return workspace
