"""``kabuild import autokernel`` on a checkout of our own, in the forms of its tasks."""

from __future__ import annotations

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.visitors import visited

REFERENCE = """
import torch

def scale_ref(x, weight):
    return x * weight
"""
BENCH = """
from __future__ import annotations

from dataclasses import dataclass

import torch

@dataclass
class Device:
    name: str = "none"

def gen_scale_inputs(size, dtype, device, seed=42):
    torch.manual_seed(seed)
    x = torch.randn(size["rows"], size["cols"], device=device, dtype=dtype)
    return {"x": x, "weight": torch.ones(size["cols"], device=device, dtype=dtype)}

def _ref_scale(inputs):
    import reference
    return reference.scale_ref(inputs["x"], inputs["weight"])

KERNEL_CONFIGS = {
    "scale": {
        "test_sizes": [
            ("tiny", {"rows": 16, "cols": 32}),
            ("large", {"rows": 256, "cols": 128}),
        ],
        "test_dtypes": [torch.bfloat16, torch.float32],
        "input_generator": gen_scale_inputs,
        "reference_fn": _ref_scale,
    },
}
"""
STARTER = """
import torch

KERNEL_TYPE = "scale"

def kernel_fn(weight, x):
    assert x.is_cuda
    return x * weight
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace beside a checkout, whose tasks were imported."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("import"))
    for name, text in (
        ("bench.py", BENCH),
        ("reference.py", REFERENCE),
        ("kernels/__init__.py", ""),
        ("kernels/scale.py", STARTER),
        ("kernels/other.py", STARTER),
        ("kernels/cuda/_compile.py", ""),
        ("kernels/cuda/scale.py", STARTER),
    ):
        workspace.write(f"../bench/{name}", text)
    ran = workspace.run("import", "autokernel", "../bench", "--name=ak")
    assert ran.code == 0, ran.err
    assert "@ak: 1 of 3 tasks imported\n  licence: MIT; bundles may" in ran.out, ran.out
    return workspace


def test_every_starter_is_imported_or_left_out_for_a_reason(imported: CliWorkspace) -> None:
    listed = dict(
        line.split("  ", 1) for line in imported.run("import", "--list", "@ak").out.splitlines()
    )

    assert listed["@ak//triton/scale"] == "imported"
    assert listed["@ak//triton/other"] == "NO_ENTRY  bench.py has no 'other' in KERNEL_CONFIGS"
    assert listed["@ak//cuda/scale"].startswith("NEEDS_GPU  its starter compiles CUDA C++")
    assert len(listed) == 3


def test_the_lock_has_sizes_and_types_of_the_bench_and_constant_weights_as_state(
    imported: CliWorkspace,
) -> None:
    lock = (imported.root / "imports/ak.lock.toml").read_text()

    for line in (
        'call = "y = kernel_fn(x=x, weight=weight)"',
        'inputs = { x = "T[rows, cols]" }',
        'state = { weight = "T[cols]" }',
        'dtypes = ["bf16", "f32"]',
        "configs = [{ rows = 256, cols = 128 }, { rows = 16, cols = 32 }]",
    ):
        assert line in lock, lock


def test_a_kernel_is_called_by_name_as_on_a_gpu_and_judged(imported: CliWorkspace) -> None:
    """One that takes the constant weights for ones is wrong."""
    wrong = STARTER.replace("x * weight", "x.clone()")

    for kernel, code, verdict in ((STARTER, 0, "PASS"), (wrong, 3, "FAIL")):
        imported.write("kernel.py", kernel)
        flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", "@ak//triton/scale", *flags)
        assert (ran.code, ran.gate("correctness")["verdict"]) == (code, verdict), ran.out
        if verdict == "FAIL":
            assert ran.gate("correctness")["reason"] == "WRONG_RESULT", ran.out


@pytest.mark.parametrize("file", ["bench.py", "reference.py", "kernels/scale.py"])
def test_a_file_that_changed_is_named(imported: CliWorkspace, file: str) -> None:
    path = imported.root / "../bench" / file
    text = path.read_text()
    try:
        path.write_text(text + "\n# changed\n")
        tested = imported.run("test", "@ak//triton/scale", "--agent=none")
    finally:
        path.write_text(text)

    assert tested.code == 1
    assert f"../bench/{file} changed since it was imported" in tested.err


def test_a_starter_without_its_bench_is_left_out_and_its_file_named(imported: CliWorkspace) -> None:
    path = imported.root / "../bench/reference.py"
    text = path.read_text()
    try:
        path.unlink()
        ran = imported.run("import", "--check", "@ak")
    finally:
        path.write_text(text)

    assert ran.code == 3, ran.err
    assert ran.out.startswith("imports/ak.lock.toml: stale\n")
    assert "scale: UNREADABLE  reference.py cannot be read: No such file" in ran.out


def test_an_agent_works_on_an_imported_task(imported: CliWorkspace) -> None:
    assert "BRIEF.md" in visited(imported, "@ak//triton/scale")
