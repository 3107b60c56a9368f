"""Half and bfloat16 against numpy and torch, over every bit pattern."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.toolchains.hip.support import Library, Load

PATTERNS = np.arange(1 << 16, dtype=np.uint16)


@pytest.fixture(scope="module")
def small(load: Load) -> Library:
    return load("small_floats")


def bfloat16_to_float(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bfloat16(values: np.ndarray) -> np.ndarray:
    bits: np.ndarray = torch.from_numpy(values.copy()).to(torch.bfloat16).view(torch.int16).numpy()
    unsigned: np.ndarray = bits.view(np.uint16)
    return unsigned


def difficult_floats() -> np.ndarray:
    """Around every half and bfloat16: itself, the middles between neighbours, and one bit off."""
    with np.errstate(invalid="ignore", over="ignore"):
        halves = PATTERNS.view(np.float16).astype(np.float32)
    halves = halves[np.isfinite(halves)]
    exact = np.concatenate([halves, bfloat16_to_float(PATTERNS)])
    bits = exact.view(np.uint32)
    middles = np.concatenate([bits + (1 << 12), bits + (1 << 15)])
    around = np.concatenate([bits, middles, middles + 1, middles - 1, bits + 1, bits - 1])
    random = np.random.default_rng(0).integers(0, 1 << 32, 100_000, dtype=np.uint32)
    floats: np.ndarray = np.concatenate([around, random]).view(np.float32)
    return floats


FLOATS = difficult_floats()


def same(got: np.ndarray, expected: np.ndarray, nan: np.ndarray) -> bool:
    """Equal bits, but for the payload of what is not a number."""
    return bool(((got == expected) | nan).all())


def test_every_half_as_float(small: Library) -> None:
    out = np.zeros(PATTERNS.size, np.float32)
    for function in ("launch_widen_half", "launch_software_widen"):
        small.run(function, PATTERNS, out, out.size)
        expected = PATTERNS.view(np.float16).astype(np.float32)
        nan = np.isnan(expected)
        assert np.isnan(out[nan]).all()
        assert same(out.view(np.uint32), expected.view(np.uint32), nan)


def test_every_bfloat16_as_float(small: Library) -> None:
    out = np.zeros(PATTERNS.size, np.float32)
    small.run("launch_widen_bfloat16", PATTERNS, out, out.size)
    assert (out.view(np.uint32) == PATTERNS.astype(np.uint32) << 16).all()


@pytest.mark.parametrize("function", ["launch_narrow_half", "launch_software_narrow"])
def test_float_to_half(small: Library, function: str) -> None:
    out = np.zeros(FLOATS.size, np.uint16)
    small.run(function, FLOATS, out, FLOATS.size)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = FLOATS.astype(np.float16)
    nan = np.isnan(FLOATS)
    assert np.isnan(out.view(np.float16)[nan]).all()
    assert same(out, expected.view(np.uint16), nan)


def test_float_to_bfloat16(small: Library) -> None:
    out = np.zeros(FLOATS.size, np.uint16)
    small.run("launch_narrow_bfloat16", FLOATS, out, FLOATS.size)
    nan = np.isnan(FLOATS)
    assert np.isnan(bfloat16_to_float(out)[nan]).all()
    assert same(out, to_bfloat16(FLOATS), nan)


def test_double_to_half_rounds_once(small: Library) -> None:
    """Just above the middle between two halves, by less than a float can say."""
    finite = FLOATS[np.isfinite(FLOATS)].astype(np.float64)
    values = np.concatenate([finite, np.nextafter(finite, np.inf), np.nextafter(finite, -np.inf)])
    out = np.zeros(values.size, np.uint16)
    small.run("launch_narrow_half_from_double", values, out, values.size)
    with np.errstate(over="ignore"):
        assert same(out, values.astype(np.float16).view(np.uint16), np.isnan(values))


def test_directed_rounding(small: Library) -> None:
    values = FLOATS[np.isfinite(FLOATS) & (np.abs(FLOATS) < 65504)]
    out = np.zeros((values.size, 4), np.float16)
    small.run("launch_round_half", values, out, values.size)
    nearest, zero, down, up = out.astype(np.float32).T
    assert (nearest == values.astype(np.float16)).all()
    assert (down <= values).all()
    assert (up >= values).all()
    assert (np.abs(zero) <= np.abs(values)).all()
    neighbour = np.nextafter(down.astype(np.float16), np.float16(np.inf))
    assert ((up == down) | (up == neighbour)).all()
    assert ((zero == down) | (zero == up)).all()


OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
]


def test_half_arithmetic_is_correctly_rounded(small: Library) -> None:
    generator = np.random.default_rng(2)
    a, b, c = generator.integers(0, 1 << 16, (3, 200_000), dtype=np.uint16).view(np.float16)
    out = np.zeros((a.size, 8), np.float16)
    small.run("launch_arithmetic_half", a, b, c, out, a.size)
    with np.errstate(all="ignore"):
        expected = [compute(a, b) for compute in OPERATORS]
        expected += [None, np.fmax(a, b), np.fmin(a, b), -a]
    for column, right in enumerate(expected):
        if right is not None:
            assert np.array_equal(out[:, column], right, equal_nan=True), column


def test_half_fma_rounds_once(small: Library) -> None:
    """No neighbour of the result is nearer to the exact value."""
    generator = np.random.default_rng(2)
    bits = generator.integers(0, 1 << 16, (3, 200_000), dtype=np.uint16)
    a, b, c = bits.view(np.float16)
    out = np.zeros((a.size, 8), np.float16)
    small.run("launch_arithmetic_half", a, b, c, out, a.size)
    with np.errstate(all="ignore"):
        exact = a.astype(np.longdouble) * b + c
        got = out[:, 4].copy()
        usable = np.isfinite(got) & np.isfinite(exact)
        error = np.abs(exact - got)[usable]
        for direction in (-np.inf, np.inf):
            neighbour = np.nextafter(got, np.float16(direction))
            assert (error <= np.abs(exact - neighbour)[usable]).all()
    assert (np.isnan(got) == np.isnan(exact)).all()
    assert usable.mean() > 0.6


def test_bfloat16_arithmetic_is_torch_s(small: Library) -> None:
    generator = np.random.default_rng(3)
    bits = generator.integers(0, 1 << 16, (3, 200_000), dtype=np.uint16)
    bits[:, :100_000] = bits[:, :100_000] & 0x8FFF | 0x3000  # of moderate size
    a, b, c = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in bits)
    out = np.zeros((a.numel(), 8), np.uint16)
    small.run("launch_arithmetic_bfloat16", bits[0], bits[1], bits[2], out, a.numel())
    wide = [x.float().numpy() for x in (a, b)]
    expected = [compute(a, b).float().numpy() for compute in OPERATORS]
    expected += [None, np.fmax(*wide), np.fmin(*wide), -wide[0]]
    for column, right in enumerate(expected):
        if right is not None:
            got = bfloat16_to_float(out[:, column].copy())
            assert np.array_equal(got, right, equal_nan=True), column
    fused = bfloat16_to_float(out[:100_000, 4].copy())
    exact = (a.double() * b.double() + c.double())[:100_000].numpy()
    assert np.allclose(fused, exact, rtol=2**-8, atol=1e-30)


@pytest.mark.parametrize("kind", ["half", "bfloat16"])
def test_comparisons(small: Library, kind: str) -> None:
    generator = np.random.default_rng(4)
    a, b = generator.integers(0, 1 << 16, (2, 100_000), dtype=np.uint16)
    b[:1000] = a[:1000]
    out = np.zeros(a.size, np.int32)
    small.run(f"launch_comparisons_{kind}", a, b, out, a.size)
    x, y = (v.view(np.float16) if kind == "half" else bfloat16_to_float(v) for v in (a, b))
    unordered = np.isnan(x) | np.isnan(y)
    tests = [x < y, x <= y, x == y, x != y, x > y, x >= y, (x < y) | unordered, np.isnan(x)]
    expected = sum(test.astype(np.int32) << i for i, test in enumerate(tests))
    assert (out == expected).all()


@pytest.mark.parametrize("kind", ["half", "bfloat16"])
def test_functions_round_the_float_result(small: Library, kind: str) -> None:
    out = np.zeros((PATTERNS.size, 6), np.uint16)
    small.run(f"launch_functions_{kind}", PATTERNS, out, PATTERNS.size)
    bits = torch.from_numpy(PATTERNS.view(np.int16))
    dtype = torch.float16 if kind == "half" else torch.bfloat16
    x = bits.view(dtype).double()
    functions = [x.exp(), x.log(), x.sqrt(), 1 / x, x.floor(), x.round()]
    got = torch.from_numpy(out.view(np.int16)).view(dtype).double()
    for column, exact in enumerate(functions):
        expected = exact.to(torch.float32).to(dtype).double()
        close = torch.isclose(got[:, column], expected, rtol=2**-7, atol=1e-37, equal_nan=True)
        assert close.all(), column
        # The C library's float functions may be off by one of their last bits.
        assert (got[:, column] == expected)[~expected.isnan()].double().mean() > 0.999


def test_mixed_operands(small: Library) -> None:
    x = np.linspace(-3, 3, 64).astype(np.float16)
    out, halves = np.zeros((64, 6), np.float32), np.zeros(64, np.float16)
    small.run("launch_mixed", x, out, halves, 64)
    wide = x.astype(np.float32)
    assert (out[:, 0] == wide * np.float32(0.1)).all()
    assert (out[:, 1] == np.float16(2) * x).all()
    assert (out[:, 2] == (1 / 3 + x.astype(np.float64)).astype(np.float32)).all()
    assert (out[:, 3] == (x > 1.5)).all()
    assert (out[:, 4] == np.rint(wide)).all()
    assert (out[:, 5] == wide[np.arange(64) ^ 1]).all()
    assert (halves == (x + np.float16(1)) * x).all()


def test_pairs(small: Library) -> None:
    generator = np.random.default_rng(5)
    a, b = generator.standard_normal((2, 32, 2)).astype(np.float16)
    out, wide = np.zeros((32, 4, 2), np.float16), np.zeros((32, 2), np.float32)
    small.run("launch_pairs", a, b, out, wide, 32)
    assert (out[:, 0] == a + b).all()
    fused = (a.astype(np.float64) * b + 0.5).astype(np.float16)
    assert (out[:, 1] == fused).all()
    assert (out[:, 2] == a * b - a[:, ::-1]).all()
    assert (out[:, 3] == np.stack([a[:, 1], b[:, 0]], 1)).all()
    t = np.arange(32, dtype=np.float32)
    tenths = np.stack([np.float32(0.1) * t, np.float32(0.2) * t], 1)
    assert np.allclose(wide, tenths, rtol=2**-11, atol=0)
    assert (wide == wide.astype(np.float16)).all()
