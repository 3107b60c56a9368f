"""Tasks of our own writing in the forms of AgentKernelArena's."""

from __future__ import annotations

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
MODULE = """
import torch
import torch.nn as nn

class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.the_weight = nn.Parameter(torch.ones(width))
        self.dropout = nn.Dropout(0.5)
    def forward(self, x):
        return self.dropout(x * self.the_weight * 0.5)

def get_inputs():
    for rows in (8, 16):
        yield [torch.randn(rows, 24)]

def get_init_inputs():
    return [[], {"width": 24}]
"""
COMPARES = """
import os
import shutil
import torch
from utils import load_function_from_path, load_hip_kernel

def _canonical_key(name):
    return name.replace("_", "")

def _candidate_module_keys(key, known):
    ours, theirs = _canonical_key(key), [(_canonical_key(name), name) for name in known]
    return [name for one, name in theirs if one.endswith(ours) or ours.endswith(one)]

def _align_state_dict(module, function):
    given, missing = module.state_dict(), []
    for key, value in function.state_dict().items():
        found = _candidate_module_keys(key, list(given))
        value.copy_(given[found[0]]) if found else missing.append(key)
    return not missing, {"missing": missing}

def load_modu_obj(path, name, init):
    return load_function_from_path(path, name)(**load_function_from_path(path, init)()[1])

def load_func_obj(path, name, init):
    return load_modu_obj(path, name, init)

def _compare_results(one, other, rtol, atol):
    return torch.allclose(one, other, rtol=rtol, atol=atol)

def _normalize_get_inputs_result(cases):
    return iter(cases)

def _write_correctness_report(report):
    raise OSError("it must write no file")

def correctness_check(module_file, function_file, kernel_file):
    os.makedirs("temp/hip")
    shutil.copy(kernel_file, "temp/hip")
    name = os.path.basename(kernel_file).split(".hip")[0].split("_", 2)[-1]
    kernel = load_hip_kernel(name, "temp/hip", kernel_file)
    cases = _normalize_get_inputs_result(load_function_from_path(module_file, "get_inputs")())
    torch.manual_seed(0)
    module = load_modu_obj(module_file, name, "get_init_inputs").to("cuda").eval()
    function = load_func_obj(function_file, name, "get_init_inputs").to("cuda").eval()
    aligned, said = _align_state_dict(module, function)
    assert aligned, said
    for case in cases:
        given = [[value.clone().to("cuda") for value in case] for _ in range(2)]
        if not _compare_results(module(*given[0]), function(*given[1], fn=kernel), 1e-4, 1e-5):
            _write_correctness_report({"message": "Output mismatch"})
            return False
    return True
"""
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

def kind_of_eight_bits():
    try:
        torch.zeros(1, device="cuda", dtype=torch.float8_e4m3fnuz)
        return torch.float8_e4m3fnuz
    except Exception:
        return torch.float8_e4m3fn

@triton.jit
def _eight_bits(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32) * 8.0
    tl.store(y + at, value.to(y.dtype.element_ty), mask=at < n)

def eight_bits(x):
    y = torch.empty(x.shape, dtype=kind_of_eight_bits(), device=x.device)
    _eight_bits[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), 64)
    return y

def with_scratch(x):
    scratch = torch.empty(2 * x.shape[0], x.shape[1], dtype=x.dtype, device=x.device)
    scratch[: x.shape[0]] = x
    return twice(x), scratch

def begun(x):
    first = torch.empty_like(x)
    first[:1] = x[:1]
    return first, twice(x)

@triton.jit
def _addressed(places, y, n, BLOCK: tl.constexpr):
    x, at = tl.load(places).to(tl.pointer_type(tl.float16)), tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

def addressed(x):
    y, places = torch.empty_like(x), torch.tensor([x.data_ptr()], device=x.device)
    _addressed[(1,)](places, y, x.numel(), triton.next_power_of_2(x.numel()))
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

def reference_begun(x):
    import torch
    first = torch.empty_like(x)
    first[:1] = x[:1]
    return first, reference_twice(x)

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
EIGHT_BITS = """kind = mod.kind_of_eight_bits()
            result = mod.eight_bits(x)
            expected = (x.float() * 8.0).to(kind)
            if not torch.allclose(result.float(), expected.float()):
                return False, "wrong\""""
EIGHT_BITS_PARTLY = EIGHT_BITS.replace(
    "if not torch.allclose(result.float(), expected.float()):",
    "if not torch.equal(result[:, :2].float(), expected[:, :2].float()):",
)
UNWRITTEN = """result, _ = mod.with_scratch(x)
            if not torch.equal(result[:, :2], (x * 2.0)[:, :2]):
                return False, "wrong\""""
BEGUN = """first, result = mod.begun(x)
            expected_first, expected = reference_begun(x)
            if not torch.equal(first[:1], expected_first[:1]):
                return False, "wrong"
            if not torch.allclose(result, expected, atol=1e-2):
                return False, "wrong\""""
ADDRESSED = """result = mod.addressed(x)
            if not torch.allclose(result, x):
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
COUNTING = TESTED.replace("tl.load(x + at, mask=at < n) * 0.5", "at % 64").replace(
    "CHECK", "assert (y == torch.arange(n, device=device) % 64).all()"
)
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
    "eight_bits": EIGHT_BITS,
    "eight_bits_partly": EIGHT_BITS_PARTLY,
    "unwritten": UNWRITTEN,
    "begun": BEGUN,
    "addressed": ADDRESSED,
}
