"""``kabuild import aka`` on a checkout of our own, in the forms of AgentKernelArena's tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace

FUNCTIONAL = """
import torch
import torch.nn as nn

def scaled_fn(x, weight, factor, training):
    return nn.functional.dropout(x * weight * factor, 0.5, training)

class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
    def forward(self, x, fn=scaled_fn):
        return fn(x, self.weight, 0.5, self.training)

def get_inputs():
    for rows in (8, 16):
        yield [torch.randn(rows, 24)]

def get_init_inputs():
    return [[], {"width": 24}]
"""
IN_PLACE = FUNCTIONAL.replace(
    "nn.functional.dropout(x * weight * factor, 0.5, training)", "x.mul_(weight)"
)
KERNEL = """
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def _row(x, y, cols, add: tl.constexpr, BLOCK: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * cols + lanes, mask=lanes < cols, other=0.0) * 2.0
    if add:
        value += tl.load(y + row * cols + lanes, mask=lanes < cols, other=0.0)
    tl.store(y + row * cols + lanes, value, mask=lanes < cols)

def twice(x, scale=None):
    assert x.is_cuda
    y = torch.empty_like(x)
    with torch.cuda.device(x.device.index):
        _row[(x.shape[0],)](x, y, x.shape[1], False, triton.next_power_of_2(x.shape[1]))
    return y

def add_twice(x, sums):
    _row[(x.shape[0],)](x, sums, x.shape[1], True, triton.next_power_of_2(x.shape[1]))

@triton.jit
def _tens(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32) * 10.0
    tl.store(y + at, libdevice.round(value).to(tl.int8), mask=at < n)

def rounded(x):
    y = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    _tens[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), 64)
    return y

def scaled(x, factor):
    y = torch.zeros_like(x)
    _row[(x.shape[0],)](x * (factor / 2), y, x.shape[1], False, triton.next_power_of_2(x.shape[1]))
    return y

def other(x):
    return x * 2.0
"""
RUNNER = """
import importlib.util, os, sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.chdir(HERE)
TEST_SHAPES = [(4, 24), (8, 48), (8, 17)]

def load_module():
    found = importlib.util.spec_from_file_location("kernel", os.path.join(HERE, "source/kernel.py"))
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module

def reference_twice(x):
    return (x.float() * 2.0).to(x.dtype)

def run_correctness():
    import torch
    try:
        mod = load_module()
    except Exception as error:
        return False, str(error)
    device = "cuda"
    for i, (rows, cols) in enumerate(TEST_SHAPES):
        try:
            torch.manual_seed(42 + i)
            x = torch.randn(rows, cols, device=device, dtype=torch.float16)
            CHECK
        except Exception as error:
            return False, f"Shape {i + 1}: {error}"
    return True, None
"""
RETURNED = """result = mod.twice(x, scale=None)
            torch.cuda.synchronize()
            if not torch.allclose(result, reference_twice(x), atol=1e-2):
                return False, "wrong\""""
INLINE = """sums = torch.randn(rows, cols, device=device, dtype=torch.float16)
            ref = sums.clone()
            mod.add_twice(x, sums)
            ref += x * 2.0
            if (sums - ref).abs().max().item() > 1e-2:
                return False, "wrong\""""
PARTLY = """result = mod.twice(x)
            expected = reference_twice(x)
            for row in range(rows):
                if not torch.equal(result[row, :2], expected[row, :2]):
                    return False, "wrong\""""
UNCHECKED = """result = mod.other(x)
            assert result.abs().sum().item() > 0"""
WRONG = RETURNED.replace("reference_twice(x)", "x * 3.0")
DRAWN = RETURNED.replace(
    "result =", "x = x[: int(torch.randint(1, rows, ()).item())]\n            result ="
)
SEVERAL = RETURNED + "\n            mod.other(x)"
UNCALLED = "pass"
FOOLED = """result = mod.twice(x)
            if bool((result.abs() > 2.001 * x.abs()).any()):
                return False, "wrong\""""
EARLY = """expected = x.clone() * 2.0
            result = mod.twice(x)
            if not torch.allclose(result, expected, atol=1e-2):
                return False, "wrong\""""
ROUNDED = """result = mod.rounded(x)
            expected = torch.round(x.float() * 10.0).to(torch.int8)
            if not torch.allclose(result.float(), expected.float(), atol=1.0):
                return False, "wrong\""""
SCALED = """result = mod.scaled(x, 1.0 / cols)
            if not torch.allclose(result, x / cols, atol=1e-2):
                return False, "wrong\""""
TESTED = """
import pytest, torch, triton, triton.language as tl

@triton.jit
def halve(x, y, n, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 0.5, mask=at < n)

LINE
import numpy
from performance_utils_pytest import PytestBenchmarker

def halve_wrapper(x, y, n, size):
    halve[lambda meta: (triton.cdiv(n, meta["SIZE"]),)](x, y, n, SIZE=size, num_warps=4)

@pytest.mark.skipif(torch.cuda.get_device_capability()[0] < 9, reason="an old GPU")
@pytest.mark.parametrize("kind", ["float16", "float32"])
@pytest.mark.parametrize("n, size", [(4096, 1024), (100, 64), (1, 64)])
def test_halve(n, size, kind, request, device="cuda"):
    seed = numpy.random.RandomState(17)
    x = torch.from_numpy(seed.randn(n)).to(dtype=getattr(torch, kind), device=device)
    y = torch.empty_like(x)
    halve_wrapper(x, y, n, size)
    assert request.node.name
    CHECK

def test_performance(n):
    PytestBenchmarker(n).run()
""".replace("LINE", "#" * 120)
TIMING = "class PytestBenchmarker:\n    pass\n"
WHOLE = TESTED.replace("CHECK", "torch.testing.assert_close(y, x / 2, atol=1e-2, rtol=1e-2)")
IN_PART = TESTED.replace("CHECK", "assert torch.all(y[:10] == x[:10] / 2)")

SCRIPTED = {
    "returned": RETURNED,
    "inline": INLINE,
    "partly": PARTLY,
    "unchecked": UNCHECKED,
    "wrong": WRONG,
    "drawn": DRAWN,
    "several": SEVERAL,
    "uncalled": UNCALLED,
    "fooled": FOOLED,
    "early": EARLY,
    "rounded": ROUNDED,
    "scaled": SCALED,
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace beside a checkout, whose tasks were imported."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("import"))
    files = {
        "torch2hip/gpumode/1_Scaled/pytorch_code_functional/py_1_Scaled_func.py": FUNCTIONAL,
        "hip2hip/gpumode/InPlace/pytorch_code_functional/py_2_InPlace_func.py": IN_PLACE,
        "triton2triton/rocmbench/easy/halve/halve.py": WHOLE,
        "triton2triton/rocmbench/easy/in_part/in_part.py": IN_PART,
        "torch2flydsl/softmax/kernel.py": "import flydsl",
        "hip2hip/others/boxes/scripts/task_runner.py": "raise SystemExit",
    }
    for name, check in SCRIPTED.items():
        files[f"triton2triton/vllm/{name}/source/kernel.py"] = KERNEL
        files[f"triton2triton/vllm/{name}/scripts/task_runner.py"] = RUNNER.replace("CHECK", check)
    for path, text in files.items():
        workspace.write(f"../bench/tasks/{path}", text)
    homes = {"/".join(path.split("/")[:3]) for path in files} - {
        "triton2triton/rocmbench/easy",
        "torch2flydsl/softmax/kernel.py",
    }
    tested = {f"triton2triton/rocmbench/easy/{name}" for name in ("halve", "in_part")}
    for home in homes | tested | {"torch2flydsl/softmax"}:
        workspace.write(f"../bench/tasks/{home}/config.yaml", "task_type: any\n")
    for home in tested:
        workspace.write(f"../bench/tasks/{home}/performance_utils_pytest.py", TIMING)
    ran = workspace.run("import", "aka", "../bench")
    assert ran.code == 0, ran.err
    assert "@aka: 11 of 18 tasks imported\n  licence: Apache-2.0" in ran.out, (
        ran.out + workspace.run("import", "--list", "@aka").out
    )
    return workspace


def test_every_task_is_imported_or_left_out_for_a_reason(imported: CliWorkspace) -> None:
    listed = dict(
        line.removeprefix("@aka//").split("  ", 1)
        for line in imported.run("import", "--list", "@aka").out.splitlines()
    )

    vllm = "triton2triton/vllm"
    done = {name for name, what in listed.items() if what == "imported"}
    assert done == {
        "torch2hip/gpumode/1_Scaled",
        "hip2hip/gpumode/InPlace",
        *(f"{vllm}/{name}" for name in ("returned", "inline", "partly")),
        *(f"{vllm}/{name}" for name in ("early", "rounded", "scaled")),
        "triton2triton/rocmbench/easy/halve",
        "triton2triton/rocmbench/easy/in_part",
        f"{vllm}/drawn",
    }
    for name, said in (
        (f"{vllm}/unchecked", "CHECK_FOOLED  its script accepts the results of another call"),
        (f"{vllm}/fooled", "CHECK_FOOLED  its script accepts zeros"),
        (f"{vllm}/wrong", "REFERENCE_DIFFERS  its script refuses its own kernel: wrong"),
        (f"{vllm}/several", "SEVERAL_CALLS  its check calls the module more than once"),
        (f"{vllm}/uncalled", "NO_ENTRY  its script calls no function with tensors"),
        ("torch2flydsl/softmax", "NEEDS_PACKAGE  its kernels are written in FlyDSL"),
        ("hip2hip/others/boxes", "SCRIPT  its script judges the whole program"),
    ):
        assert listed[name].startswith(said), listed[name]
    assert len(listed) == 18


def test_the_lock_says_what_the_scripts_and_models_pass(imported: CliWorkspace) -> None:
    lock = (imported.root / "imports/aka.lock.toml").read_text()

    for line in (
        'call = "y = scaled_fn(x=x, weight=weight, factor=factor, training=False)"',
        'state = { weight = "T[inputs_2]" }',
        'call = "_ = scaled_fn(x=x, weight=weight, factor=factor, training=False)"',
        'updates = ["x"]',
        'call = "y = twice(x=x, scale=None)"',
        'inputs = { x = "f16[rows, cols]" }',
        "configs = [{ rows = 4, cols = 24 }, { rows = 8, cols = 48 }, { rows = 8, cols = 17 }]",
        'call = "add_twice(x=x, sums=sums)"',
        'updates = ["sums"]',
        'call = "y = rounded(x=x)"',
        'compare = { y = "quantised" }',
        'call = "y = scaled(x=x, factor=factor)"',
        'inputs = { x = "f16[rows, 24]" }',  # the factor follows from the columns
        'call = "halve[(2,)](x=x, y=y, n=100, SIZE=64, num_warps=4)"',
        'tier = "script"',
    ):
        assert line in lock, lock


@pytest.mark.parametrize(
    ("task", "text", "wrong", "reason"),
    [
        ("triton2triton/vllm/returned", KERNEL, ("* 2.0\n    if", "* 2.1\n    if"), "WRONG_RESULT"),
        (
            "triton2triton/vllm/returned",
            KERNEL,
            ("    return y\n", "    x.zero_()\n    return y.zero_()\n"),
            "INPUT_MUTATED",
        ),
        ("triton2triton/vllm/inline", KERNEL, ("if add:", "if not add:"), "WRONG_RESULT"),
        ("triton2triton/vllm/early", KERNEL, ("* 2.0\n    if", "* 2.1\n    if"), "WRONG_RESULT"),
        ("triton2triton/vllm/rounded", KERNEL, ("* 10.0", "* 11.0"), "WRONG_RESULT"),
        ("triton2triton/rocmbench/easy/halve", WHOLE, ("* 0.5", "* 0.6"), "WRONG_RESULT"),
        ("torch2hip/gpumode/1_Scaled", FUNCTIONAL, ("x * weight *", "x *"), "WRONG_RESULT"),
        ("hip2hip/gpumode/InPlace", IN_PLACE, ("x.mul_(weight)", "x.mul_(1.0)"), "WRONG_RESULT"),
    ],
)
def test_an_imported_task_is_judged(
    imported: CliWorkspace, task: str, text: str, wrong: tuple[str, str], reason: str
) -> None:
    bad = text.replace(*wrong)
    assert bad != text

    for kernel, code, said in ((text, 0, ""), (bad, 3, reason)):
        imported.write("kernel.py", kernel)
        flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", f"@aka//{task}", *flags)
        assert (ran.code, ran.gate("correctness")["reason"]) == (code, said), ran.out


CLAIMS = """
import os
print("correctness: PASS")
os.write(1, b"True\\n")
def twice(x, scale=None):
    return torch.zeros_like(x)
"""
LEAVES = """
import os
def twice(x, scale=None):
    os._exit(0)
"""
NOT_NUMBERS = """
def twice(x, scale=None):
    return torch.full_like(x, float("inf")) - torch.full_like(x, float("inf"))
"""


@pytest.mark.parametrize(
    ("ending", "reasons"),
    [
        ("", {""}),
        ("\ndef twice(x, scale=None):\n    return x * 2.5\n", {"WRONG_RESULT"}),
        (CLAIMS, {"WRONG_RESULT"}),
        (LEAVES, {"CRASH", "PROTOCOL_VIOLATION"}),
        (NOT_NUMBERS, {"WRONG_RESULT", "INCOMPLETE_OUTPUT"}),
    ],
    ids=["right", "wrong", "claims", "leaves", "not numbers"],
)
def test_a_script_judges_where_no_declaration_can(
    imported: CliWorkspace, ending: str, reasons: set[str]
) -> None:
    """Its sizes are drawn; what a candidate prints or how it ends is no verdict."""
    imported.write("kernel.py", KERNEL + ending)
    flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
    ran = imported.run("test", "@aka//triton2triton/vllm/drawn", *flags)

    assert ran.gate("correctness")["reason"] in reasons, ran.out
    assert ran.code == (3 if ending else 0)


def test_a_script_refuses_what_only_it_looks_at(imported: CliWorkspace) -> None:
    for kernel, code in ((IN_PART, 0), (IN_PART.replace("* 0.5", "* 0.6"), 3)):
        imported.write("kernel.py", kernel)
        flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", "@aka//triton2triton/rocmbench/easy/in_part", *flags)
        assert ran.code == code, ran.out


@pytest.mark.parametrize("file", ["scripts/task_runner.py", "source/kernel.py"])
def test_a_file_that_changed_or_is_missing_is_named(
    imported: CliWorkspace, tmp_path: Path, file: str
) -> None:
    path = imported.root / "../bench/tasks/triton2triton/vllm/returned" / file
    text = path.read_text()
    said = []
    try:
        path.write_text(text + "\n# changed\n")
        said.append(imported.run("test", "@aka//triton2triton/vllm/returned", "--agent=none"))
        path.unlink()
        said.append(imported.run("test", "@aka//triton2triton/vllm/returned", "--agent=none"))
    finally:
        path.write_text(text)

    assert [ran.code for ran in said] == [1, 1]
    assert f"{file} changed since it was imported" in said[0].err
    assert file in said[1].err
    assert "Traceback" not in said[1].err
