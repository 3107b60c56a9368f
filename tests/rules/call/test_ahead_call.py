"""Modules with a call, compiled for a GPU that is not there: what their runners are handed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.cli import REPOSITORY

CASES = REPOSITORY / "tests/rules/triton2triton/ahead_cases.py"
CALL = {
    "targets": "y",
    "node": {
        "call": {"call": {"function": "Model"}, "args": [{"name": "cols"}], "keywords": []},
        "args": [{"name": "x"}, {"name": "parts"}],
        "keywords": [
            ["size", {"call": {"function": "size"}, "args": [], "keywords": []}],
            ["mask", {"name": "mask"}],
        ],
    },
    "names": ["ModelNew", "Model"],
    "state_by": "name",
}
ROWS, COLS = "rows", "cols"
ABSENT = {"absent": ["mask"]}
SPEC = {
    "platform": "cuda",
    "arch": "sm_90",
    "call": json.dumps(CALL),
    "adapter": "adapter.py",
    "signature": {
        "inputs": [
            ["x", "T", [ROWS, COLS], {"layout": "[2 * cols, 1]"}],
            ["parts", "i32", [COLS], {"count": "rows"}],
            ["mask", "bool", [ROWS], {"optional": True}],
        ],
        "outputs": [["y", "T", [ROWS, COLS]]],
        "state": [["linear.weight", "f32", [COLS, COLS]]],
        "scalars": [],
        "dims": [ROWS, COLS],
    },
    "configs": [
        {"name": "a", "dims": {ROWS: 8, COLS: 64}, "dtype": "f32", "scalars": {}},
        {"name": "b", "dims": {ROWS: 4, COLS: 32}, "dtype": "f16", "scalars": {}, **ABSENT},
    ],
}  # fmt: skip
HEAD = """
import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({}, num_warps=n) for n in (1, 2)], key=["cols"])
@triton.jit
def copy(x, y, cols, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < cols), at < cols)


class Model(torch.nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.linear = torch.nn.Linear(cols, cols, bias=False)

    def forward(self, x, parts, size, mask=None):
        assert x.is_cuda and x.stride() == (2 * x.shape[1], 1) and len(parts) == len(x)
        held = torch.zeros(x.shape, dtype=x.dtype, device="cuda").to("cuda:0").cuda()
        with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.Stream()):
            y = torch.empty_like(held)
"""
MODULES = {
    "good": "        copy[(len(x),)](x, y, x.shape[1], BLOCK=size)\n"
    "        torch.cuda.synchronize()\n        return y",
    "masked": "        copy[(len(x),)](x, y, x.shape[1], BLOCK=size)\n"
    "        return y * mask[:, None]",
    "plain": "        return self.linear(x.float()).to(y.dtype)",
}


def tools(folder: Path) -> Path:
    """The gate's tools as its sandbox has them."""
    rules, hip = REPOSITORY / "rules", REPOSITORY / "toolchains/hip"
    made = shutil.copytree(rules / "triton2triton/tools", folder / "tools")
    for part in ("base", "terms", "pyrunner", "pyrunner_call"):
        shutil.copytree(rules / "harness/tools" / part, made / part)
    for file in (rules / "call/tools").glob("*.py"):
        shutil.copy(file, made)
    for name in ("limits.py", "namespaces.py", "rootfs.py", "seccomp.py"):
        shutil.copy(REPOSITORY / "kabuild/sandbox" / name, made)
    for part in ("common", "cuda/driver"):
        shutil.copytree(hip / part, folder / "hip" / part)
    platforms = shutil.copytree(REPOSITORY / "toolchains/platforms", folder / "platforms")
    shutil.copy(platforms / "cuda/tools/cuda_triton.py", made)
    return made


def ran(folder: Path, *command: str) -> str:
    """What a program prints; other tests interpret kernels in this process."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("TRITON_")}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ahead")
    tools(made)
    (made / "ahead.json").write_text(json.dumps(SPEC))
    (made / "adapter.py").write_text("def size():\n    return 64\n")
    for name, body in MODULES.items():
        (made / f"{name}.py").write_text(f"{HEAD}{body}\n")
    return made


def test_a_call_compiles_what_it_launches_without_data(folder: Path) -> None:
    """Objects with weights, lists, strides, ``None``, and names of the device are understood."""
    printed = ran(folder, str(CASES), "tools", "ahead.json", "good.py")
    found: dict[str, Any] = json.loads(printed)

    assert (found["good"]["error"], found["good"]["left_out"]) == ("", "")
    assert {kernel["num_warps"] for kernel in found["good"]["kernels"]} == {1, 2}
    assert len([path for path in found["good"]["binaries"] if path.endswith(".cubin")]) == 2 * 2


def test_a_call_that_fails_hands_on_what_was_compiled_until_then(folder: Path) -> None:
    """A call may need values, or fail, in one config only; runners compile the rest."""
    printed = ran(folder, str(CASES), "tools", "ahead.json", "masked.py")
    found = json.loads(printed)["masked"]

    assert "NoneType" in found["left_out"]  # the mask of the second config
    assert len([path for path in found["binaries"] if path.endswith(".cubin")]) == 4


@pytest.mark.parametrize(
    ("module", "said", "cubins"), [("good", ", 2 kernels compiled", 4), ("plain", "", 0)]
)
def test_the_gate_writes_the_kernels_of_a_module_that_has_any(
    folder: Path, module: str, said: str, cubins: int
) -> None:
    text = (folder / f"{module}.py").read_text()
    if not cubins:
        text = "".join(line for line in text.splitlines(True) if "riton" not in line)
        text = text.replace("def copy(x, y, cols, BLOCK: tl.constexpr)", "def copy(x, y, cols)")
    (folder / "handed.py").write_text(text)
    out = folder / f"out-{module}"
    out.mkdir()
    told = ("--source=handed.py", "--name=ModelNew", "--name=Model", "--ahead=ahead.json")
    ran(folder, "tools/read_module.py", *told, f"--out={out}")

    verdict = json.loads((out / "verdict.json").read_text())
    assert verdict["verdict"] == "PASS"
    assert verdict["summary"].partition("lines")[2] == said
    files = json.loads((out / "kernels.json").read_text())["files"]
    assert len([path for path in files if path.endswith(".cubin")]) == cubins
