"""bfloat16 and float16 under the cpu platform's Triton, against PyTorch's own."""

# ruff: noqa: N803  (constants of a kernel are written in capitals)
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from triton_cpu import bf16
from triton_cpu import interpreter as triton_cpu

triton_cpu.install()

BF16 = torch.bfloat16


@triton.jit
def apply(x, y, o, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a = tl.load(x + i, mask=m, other=1.0)
    b = tl.load(y + i, mask=m, other=1.0)
    tl.store(o + i, OP(a, b), mask=m)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def subtract(a, b):
    return a - b


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def negate_then_scale(a, b):
    return -a * 1.7 + b * 3


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b)


@triton.jit
def absolute(a, b):
    return tl.abs(a) + b


@triton.jit
def select(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def divide(a, b):
    return a / b


@triton.jit
def fused(a, b):
    return tl.fma(a, b, a)


@triton.jit
def less(a, b):
    return a < b


@triton.jit
def convert(a, b):
    return a


@triton.jit
def towards_zero(a, b):
    return a.to(tl.bfloat16, fp_downcast_rounding="rtz")


@triton.jit
def bits_up(a, b):
    return (a.to(tl.int16, bitcast=True) + 1).to(tl.bfloat16, bitcast=True)


def run(op, x, y, dtype):
    out = torch.full((x.numel(),), -7, dtype=torch.float64).to(dtype)
    apply[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), OP=op, BLOCK=64)
    return out


def pair(dtype, n=201, seed=1):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, generator=generator) * torch.logspace(-6, 6, n)
    y = torch.randn(n, generator=generator)
    return x.to(dtype), y.to(dtype)


ELEMENTWISE = [
    (add, lambda x, y: x + y),
    (subtract, lambda x, y: x - y),
    (multiply, lambda x, y: x * y),
    (maximum, torch.maximum),
    (absolute, lambda x, y: x.abs() + y),
    (select, torch.maximum),
]


@pytest.mark.parametrize("dtype", [BF16, torch.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize(("op", "expected"), ELEMENTWISE, ids=lambda v: getattr(v, "__name__", ""))
def test_each_operation_rounds_once_as_pytorch_does(op, expected, dtype):
    x, y = pair(dtype)
    assert torch.equal(run(op, x, y, dtype), expected(x, y))


@pytest.mark.parametrize("dtype", [BF16, torch.float16], ids=["bf16", "f16"])
def test_constants_take_the_tensors_type_and_each_step_is_rounded(dtype):
    x, y = pair(dtype)
    scale = torch.tensor(1.7, dtype=dtype)
    expected = -x * scale + y * torch.tensor(3.0, dtype=dtype)
    assert torch.equal(run(negate_then_scale, x, y, dtype), expected)


@pytest.mark.parametrize("dtype", [BF16, torch.float16], ids=["bf16", "f16"])
def test_division_of_16_bit_floats_is_in_float32(dtype):
    x, y = pair(dtype)
    assert torch.equal(run(divide, x, y, torch.float32), x.float() / y.float())


def test_fma_rounds_once():
    x, y = pair(BF16)
    expected = (x.double() * y.double() + x.double()).float().to(BF16)
    assert torch.equal(run(fused, x, y, BF16), expected)


def test_comparison_gives_truth_values():
    x, y = pair(BF16)
    assert torch.equal(run(less, x, y, torch.int32), (x < y).int())


@pytest.mark.parametrize("source", [torch.float64, torch.float32, torch.float16, torch.int32, BF16])
@pytest.mark.parametrize("target", [torch.float64, torch.float32, torch.float16, BF16])
def test_casts_agree_with_pytorch(source, target):
    x, y = pair(torch.float64)
    x = x.clamp(-60000, 60000).to(source)
    # Triton goes through float32 between bf16 and the other types.
    expected = x.float().to(target) if BF16 in (source, target) else x.to(target)
    assert torch.equal(run(convert, x, y.to(source), target), expected)


def test_bf16_to_integer_truncates():
    x = torch.tensor([1.5, -1.5, 255.0, -0.25], dtype=BF16)
    assert run(convert, x, x, torch.int32).tolist() == [1, -1, 255, 0]


def test_rounding_towards_zero_on_demand():
    x, y = pair(torch.float32)
    out = run(towards_zero, x, y, BF16).float()
    assert (out.abs() <= x.abs()).all()
    assert ((x - out).abs() <= x.abs() * 2.0**-7).all()


def test_bit_casts_see_the_16_bit_pattern():
    x, y = pair(BF16)
    expected = (x.view(torch.int16) + 1).view(BF16)
    assert torch.equal(run(bits_up, x, y, BF16), expected)


def test_every_bit_pattern_survives_load_and_store():
    bits = np.arange(1 << 16, dtype=np.uint16)
    assert np.array_equal(bf16.to_bits(bf16.from_bits(bits)), bits)
    x = torch.from_numpy(bits.view(np.int16)).view(BF16)
    out = torch.empty_like(x)
    apply[(64,)](x, x, out, x.numel(), OP=convert, BLOCK=1024)
    assert torch.equal(out.view(torch.int16), x.view(torch.int16))


@given(arrays(np.uint32, 32, elements=st.integers(0, 2**32 - 1)))
def test_rounding_agrees_with_pytorch_for_any_float32(words):
    values = words.view(np.float32)
    ours = torch.from_numpy(bf16.rounded(values))
    theirs = torch.from_numpy(values.copy()).to(BF16).float()
    assert torch.equal(ours.isnan(), theirs.isnan())
    assert torch.equal(ours.nan_to_num(7), theirs.nan_to_num(7))


@triton.jit
def multiply_tiles(a, b, c, K: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, N)
    k = tl.arange(0, K)
    x = tl.load(a + r[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + r[None, :])
    tl.store(c + r[:, None] * N + r[None, :], tl.dot(x, y))


@pytest.mark.parametrize("dtype", [BF16, torch.float16, torch.float32])
def test_dot_accumulates_in_float32(dtype):
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(16, 64, generator=generator).to(dtype)
    b = torch.randn(64, 16, generator=generator).to(dtype)
    c = torch.empty(16, 16)
    multiply_tiles[(1,)](a, b, c, K=64, N=16)
    assert torch.allclose(c.double(), a.double() @ b.double(), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.int8])
def test_integer_dot_is_exact(dtype):
    a = torch.arange(16 * 64).reshape(16, 64).to(dtype)
    b = torch.arange(64 * 16).reshape(64, 16).to(dtype)
    c = torch.empty(16, 16, dtype=torch.int32)
    multiply_tiles[(1,)](a, b, c, K=64, N=16)
    assert torch.equal(c, a.int() @ b.int())


@triton.jit
def row_sums(x, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + i)
    tl.store(o + tl.program_id(0), tl.sum(v, axis=0))


@pytest.mark.parametrize("dtype", [BF16, torch.float16], ids=["bf16", "f16"])
def test_a_16_bit_sum_rounds_at_every_combination(dtype):
    x = torch.randn(4, 256, generator=torch.Generator().manual_seed(5)).to(dtype)
    out = torch.empty(4, dtype=dtype)
    row_sums[(4,)](x, out, BLOCK=256)
    tree = x
    while tree.shape[1] > 1:
        tree = tree[:, 0::2] + tree[:, 1::2]
    assert torch.equal(out, tree[:, 0])


@triton.jit
def row_statistics(x, high, low, at, running, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    r = tl.program_id(0)
    v = tl.load(x + r * BLOCK + i)
    tl.store(high + r, tl.max(v, axis=0))
    tl.store(low + r, tl.min(v, axis=0))
    tl.store(at + r, tl.argmax(v, axis=0))
    tl.store(running + r * BLOCK + i, tl.cumsum(v, axis=0))


def test_extrema_and_scans_of_bf16():
    x = torch.randn(3, 64, generator=torch.Generator().manual_seed(6)).to(BF16)
    high, low = torch.empty(3, dtype=BF16), torch.empty(3, dtype=BF16)
    at, running = torch.empty(3, dtype=torch.int32), torch.empty(3, 64)
    row_statistics[(3,)](x, high, low, at, running, BLOCK=64)
    assert torch.equal(high, x.max(dim=1).values)
    assert torch.equal(low, x.min(dim=1).values)
    assert torch.equal(at.long(), x.float().argmax(dim=1))
    assert torch.allclose(running, x.float().cumsum(dim=1), atol=1e-5)


@triton.jit
def accumulate(x, total, old, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = i < n
    before = tl.atomic_add(total + i % 2, tl.load(x + i, mask=m, other=0.0), mask=m)
    tl.store(old + i, before, mask=m)


@pytest.mark.parametrize("dtype", [BF16, torch.float16], ids=["bf16", "f16"])
def test_atomic_add_of_16_bit_floats_rounds_each_step(dtype):
    x = torch.randn(11, generator=torch.Generator().manual_seed(7)).to(dtype)
    total, old = torch.zeros(2, dtype=dtype), torch.zeros(11, dtype=dtype)
    accumulate[(1,)](x, total, old, 11, BLOCK=16)
    expected, before = torch.zeros(2, dtype=dtype), []
    for i, value in enumerate(x):
        before.append(expected[i % 2].item())
        expected[i % 2] += value
    assert torch.equal(total, expected)
    assert old.tolist() == before


@triton.jit
def copy_by_block_pointer(x, o, rows, cols, B: tl.constexpr):
    shape, stride = (rows, cols), (cols, 1)
    a = tl.make_block_ptr(x, shape, stride, (0, 0), (B, B), (1, 0))
    b = tl.make_block_ptr(o, shape, stride, (0, 0), (B, B), (1, 0))
    v = tl.load(a, boundary_check=(0, 1), padding_option="zero")
    tl.store(b, v + v, boundary_check=(0, 1))


@triton.jit
def copy_by_descriptor(x, o, rows, cols, B: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [rows, cols], [cols, 1], [B, B])
    b = tl.make_tensor_descriptor(o, [rows, cols], [cols, 1], [B, B])
    v = a.load([0, 0])
    b.store([0, 0], v + v)


@pytest.mark.parametrize("kernel", [copy_by_block_pointer, copy_by_descriptor])
@pytest.mark.parametrize("dtype", [BF16, torch.float16, torch.float32])
def test_block_pointers_and_descriptors(kernel, dtype):
    x = torch.randn(11, 8, generator=torch.Generator().manual_seed(8)).to(dtype)
    out = torch.zeros_like(x)
    kernel[(1,)](x, out, 11, 8, B=16)
    assert torch.equal(out, x + x)
