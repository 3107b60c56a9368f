"""Functions under HIP's names."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.toolchains.hip.support import Library, Load


@pytest.fixture(scope="module")
def mathematics(load: Load) -> Library:
    return load("mathematics")


def test_float_functions(mathematics: Library) -> None:
    xs = np.array([0.1, 0.5, 1.0, 1.25, 2.0, 3.75], np.float32)
    out = np.zeros((xs.size, 20), np.float32)
    mathematics.run("launch_floats", xs, out, xs.size)
    for row, value in zip(out, xs, strict=True):
        x = float(value)
        expected = [
            math.exp(x),
            math.log(x),
            x**-0.5,
            x * x + 1,
            math.erf(x),
            math.tanh(x),
            x**1.5,
            math.exp(x),
            max(x, 1) + min(x, 2),
            min(max(x - 1, 0), 1),
            1 / x,
            0.5 * math.erfc(-x / math.sqrt(2)),
            math.sin(math.pi * x),
            math.cos(math.pi * x),
            x**-0.5,
            1 / x,
            x * x + 1,
            -x,
            2 * x,
            math.sin(x) + math.cos(x),
        ]
        assert np.allclose(row, expected, rtol=1e-6, atol=1e-6)


def test_sinpi_is_exact_at_integers(mathematics: Library) -> None:
    out = np.zeros((2, 20), np.float32)
    mathematics.run("launch_floats", np.array([1, 2], np.float32), out, 2)
    assert (out[:, 12] == 0).all()
    assert out[:, 13].tolist() == [-1, 1]


def test_integer_functions(mathematics: Library) -> None:
    xs = np.array([0, 1, 2, 0x80000000, 0x12345678, 0xFFFFFFFF, 999], np.uint32)
    out = np.zeros((xs.size, 16), np.int64)
    mathematics.run("launch_integers", xs, out, xs.size)
    for row, value in zip(out, xs, strict=True):
        x = int(value)
        signed = x - (1 << 32) if x >> 31 else x
        low24 = x & 0xFFFFFF
        expected = [
            x.bit_count(),
            32 - x.bit_length(),
            (x & -x).bit_length(),
            int(f"{x:032b}"[::-1], 2),
            2 * x.bit_count(),
            64 - x.bit_length(),
            x * x >> 32,
            (x << 32) * x >> 64,
            _signed((low24 - (1 << 24) if low24 >> 23 else low24) * 3),
            int.from_bytes([x & 255, x >> 8 & 255, x >> 16 & 255, 1], "little"),
            (x << 8 | x >> 24) & 0xFFFFFFFF,
            _rint32(np.float32(x) * np.float32(0.5)),
            abs(x - 1000) + 1,
            max(x & 255, 17) + min(x & 255, 3),
            x,
            signed * (1 << 30) >> 32,
        ]
        assert row.tolist() == expected


def _signed(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _rint32(value: np.float32) -> int:
    """What the host's conversion gives for floats beyond an int: the smallest int."""
    rounded = int(np.rint(value))
    return rounded if rounded < 1 << 31 else -(1 << 31)
