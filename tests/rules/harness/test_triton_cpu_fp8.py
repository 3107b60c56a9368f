"""8-bit floats under the cpu platform's Triton, against PyTorch's own."""

# ruff: noqa: N803  (constants of a kernel are written in capitals)
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton_cpu import fp8
from triton_cpu import interpreter as triton_cpu

triton_cpu.install()

FORMATS = {
    torch.float8_e4m3fn: tl.float8e4nv,
    torch.float8_e4m3fnuz: tl.float8e4b8,
    torch.float8_e5m2: tl.float8e5,
    torch.float8_e5m2fnuz: tl.float8e5b16,
}
formats = pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: str(kind).partition(".")[2])


@triton.jit
def convert(x, o, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n).to(KIND), mask=i < n)


@triton.jit
def towards_zero(x, o, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(KIND, fp_downcast_rounding="rtz")
    tl.store(o + i, value, mask=i < n)


@triton.jit
def bits(x, o, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(KIND, bitcast=True)
    tl.store(o + i, value.to(tl.float32), mask=i < n)


@triton.jit
def multiply(a, b, o, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(o + i, tl.dot(tl.load(a + i), tl.load(b + i)))


def run(kernel, x, into, kind):
    out = torch.zeros(x.numel()).to(into)
    kernel[(1,)](x, out, x.numel(), KIND=kind, BLOCK=triton.next_power_of_2(x.numel()))
    return out


def every(kind):
    """All values of a format, by pattern."""
    return torch.arange(256, dtype=torch.uint8).view(kind)


def finite(kind):
    """The finite values of a format, in order."""
    values = every(kind).float()
    return values[values.isfinite()].unique()


def same(one, other):
    return torch.equal(one.float().nan_to_num(9e9), other.float().nan_to_num(9e9))


@formats
def test_all_patterns_are_read_and_written(kind):
    x = every(kind)
    assert same(run(convert, x, torch.float32, tl.float32), x.float())
    back = run(convert, x.float()[x.float().isfinite()], kind, FORMATS[kind])
    assert same(back, x[x.float().isfinite()].float())
    assert same(run(bits, x.view(torch.uint8), torch.float32, FORMATS[kind]), x.float())


@formats
@pytest.mark.parametrize("wide", [torch.float32, torch.float16, torch.bfloat16])
def test_conversion_rounds_to_nearest_even(kind, wide):
    """All midpoints between neighbours, what is beside them, and random numbers, as in PyTorch."""
    values = finite(kind)
    middles = (values[1:] + values[:-1]) / 2
    beside = [torch.nextafter(middles, torch.tensor(end)) for end in (-1e9, 1e9)]
    drawn = torch.randn(500, generator=torch.Generator().manual_seed(1)) * 8
    x = torch.cat([middles, *beside, drawn]).to(wide)
    x = x[x.float().abs() <= values.max()]

    assert same(run(convert, x, kind, FORMATS[kind]), x.to(kind))


@formats
def test_conversion_saturates_and_keeps_nan(kind):
    top = finite(kind).max()
    x = torch.tensor([1e9, -1e9, float("inf"), -float("inf"), float("nan"), -0.0])
    found = run(convert, x, kind, FORMATS[kind]).float()
    assert found[:4].tolist() == [top, -top, top, -top]
    assert found[4].isnan()
    assert found[5] == 0


@formats
def test_rounding_towards_zero_never_grows(kind):
    values = finite(kind)
    x = torch.cat([values, (values[1:] + values[:-1]) / 2])
    found = run(towards_zero, x, kind, FORMATS[kind]).float()
    nearest = [values[(values.abs() <= v.abs()) & (values * v >= 0)] for v in x]
    assert found.tolist() == [float(v[v.abs().argmax()]) for v in nearest]


@formats
def test_a_product_of_matrices_takes_exact_values(kind):
    generator = torch.Generator().manual_seed(2)
    a, b = (torch.randn(16, 16, generator=generator).to(kind) for _ in range(2))
    out = torch.zeros(16, 16)
    multiply[(1,)](a, b, out, KIND=FORMATS[kind], N=16)
    torch.testing.assert_close(out, a.float() @ b.float())


def test_rounding_keeps_any_shape():
    one = fp8.FORMATS["fp8e4nv"]
    for shape in ((), (0,), (2, 3)):
        assert one.rounded(np.full(shape, 1.07)).shape == shape
        assert one.from_bits(one.to_bits(np.ones(shape, np.float32))).shape == shape


def test_the_format_that_pytorch_lacks_is_refused():
    with pytest.raises(Exception, match="does not run Triton's 'fp8e4b15'"):
        run(convert, torch.ones(4), torch.float32, tl.float8e4b15)
