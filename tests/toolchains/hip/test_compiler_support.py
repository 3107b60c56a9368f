"""Conversions and arithmetic that compilers leave to a library, against exact fractions."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import numpy as np
import pytest

from tests.toolchains.hip.support import Library, Load

HALF, BRAIN, SINGLE, DOUBLE, QUAD = (10, 5), (7, 8), (23, 8), (52, 11), (112, 15)
SPECIAL = [0.0, -0.0, 1.0, -1.5, 65504.0, 65519.99999, 65520.0, 6e-8, 2.0**-25, 2.0**-24 * 1.5]
SPECIAL += [2.0**-133, 3.4e38, 1e300, 1e-300, 2.0**63, -(2.0**126), 0.1, 1 + 2.0**-11]
SPECIAL += [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-30, 5e-324, float("inf"), float("nan")]
RANDOM = random.Random(1)
DOUBLES = SPECIAL + [RANDOM.uniform(-2, 2) * 2.0 ** RANDOM.randint(-30, 60) for _ in range(300)]
LIMITS = [1, -1, 2**127 - 1, -(2**127), 2**64, 2**64 - 1, 2**53 + 1, -(2**24) - 1, 65520, 3, 10**30]
INTEGERS = LIMITS + [RANDOM.getrandbits(RANDOM.randint(2, 127)) | 1 for _ in range(200)]
INTEGERS += [-RANDOM.getrandbits(RANDOM.randint(2, 127)) | 1 for _ in range(200)]


@pytest.fixture(scope="module")
def support(load: Load) -> Library:
    return load("support")


def encoded(value: Fraction | float, layout: tuple[int, int], *, negative: bool = False) -> int:
    """The bits of the nearest number, ties to even."""
    fraction, exponent_bits = layout
    top, bias = (1 << exponent_bits) - 1, (1 << (exponent_bits - 1)) - 1
    sign = (negative or value < 0) << (fraction + exponent_bits)
    if isinstance(value, float) and value != value:
        return top << fraction | 1 << (fraction - 1)
    if isinstance(value, float) and abs(value) == float("inf"):
        return sign | top << fraction
    exact = abs(Fraction(value))
    if not exact:
        return sign
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent -= exact < Fraction(2) ** exponent
    exponent = max(exponent, 1 - bias)
    kept = round(exact / Fraction(2) ** (exponent - fraction))  # to even, like IEEE 754
    bits = (max(exponent + bias, 1) - 1 << fraction) + kept
    return sign | min(bits, top << fraction)


def truncated(value: float) -> int:
    return int(value) if abs(value) < 2.0**127 else -1


def results(data: np.ndarray, width: int) -> list[list[int]]:
    """Rows of ``width`` numbers of 16 bytes."""
    raw = data.tobytes()
    numbers = [int.from_bytes(raw[i : i + 16], "little") for i in range(0, len(raw), 16)]
    return [numbers[i : i + width] for i in range(0, len(numbers), width)]


def wide(numbers: list[int]) -> np.ndarray:
    raw = b"".join((number % 2**128).to_bytes(16, "little") for number in numbers)
    return np.frombuffer(raw, dtype=np.uint8).copy()


def test_doubles_become_every_other_format(support: Library) -> None:
    out = np.zeros(len(DOUBLES) * 160, dtype=np.uint8)
    support.run("convert", np.array(DOUBLES), out, len(DOUBLES))

    for value, row in zip(DOUBLES, results(out, 10), strict=True):
        negative = bool(struct.pack(">d", value)[0] & 0x80)
        expected = [encoded(value, layout, negative=negative) for layout in (HALF, SINGLE, QUAD)]
        if value == value:
            assert row[:3] == expected, value
            assert row[3] == encoded(value, DOUBLE, negative=negative), value
            assert row[4] == expected[0], value
            assert row[9] in {encoded(value, BRAIN, negative=negative), 0}, value
            with np.errstate(over="ignore"):
                (twice,) = struct.unpack("<H", np.float16(np.float32(value)).tobytes())
            assert row[8] in {twice, expected[0]}, value  # compilers may leave a step out
        if abs(value) < 2.0**126:
            whole = int(value)
            assert row[5:8] == [whole % 2**128, whole % 2**128, abs(whole)], value


def test_wide_integers_become_every_format(support: Library) -> None:
    out = np.zeros(len(INTEGERS) * 96, dtype=np.uint8)
    support.run("convert_integers", wide(INTEGERS), out, len(INTEGERS))

    for value, row in zip(INTEGERS, results(out, 6), strict=True):
        exact, unsigned = Fraction(value), Fraction(value % 2**128)
        assert row[:4] == [encoded(exact, to) for to in (HALF, SINGLE, DOUBLE, QUAD)], value
        assert row[4:] == [encoded(unsigned, SINGLE), encoded(unsigned, DOUBLE)], value


def test_wide_integers_divide(support: Library) -> None:
    out = np.zeros((len(INTEGERS) - 1) * 64, dtype=np.uint8)
    support.run("divide_integers", wide(INTEGERS), out, len(INTEGERS))

    for a, b, row in zip(INTEGERS, INTEGERS[1:], results(out, 4), strict=False):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        expected = [quotient, a - quotient * b]
        expected += divmod(a % 2**128, b % 2**128)
        assert row == [number % 2**128 for number in expected], (a, b)


def test_quads_are_exact(support: Library) -> None:
    values = [
        Fraction(i, RANDOM.randint(1, 9**40)) * 2 ** RANDOM.randint(-90, 90) for i in INTEGERS
    ]
    bits = [encoded(value, QUAD) for value in values]
    exact = [_decoded(one) for one in bits]
    out = np.zeros((len(bits) - 1) * 80, dtype=np.uint8)
    support.run("calculate_quads", wide(bits), out, len(bits))

    for a, b, row in zip(exact, exact[1:], results(out, 5), strict=False):
        assert row[:4] == [encoded(x, QUAD) for x in (a + b, a - b, a * b, a / b)], (a, b)
        assert row[4] == encoded(Fraction((a < b) + 2 * (a == b) + 4 * (a >= b)), QUAD)


def test_complex_numbers_and_powers(support: Library) -> None:
    for a, b, exponent in ((1 + 2j, 3 - 4j, 5), (1e200 + 1e200j, 1e200 - 3e199j, -3)):
        out = np.zeros(5)
        operands = [a.real, a.imag, b.real, b.imag, float(exponent)]
        support.run("calculate_complex", np.array(operands), out)
        assert complex(out[2], out[3]) == pytest.approx(a / b, rel=1e-14)
        if abs(a) < 1e100:
            assert complex(out[0], out[1]) == a * b
            assert out[4] == a.real**exponent


def _decoded(bits: int) -> Fraction:
    fraction, exponent = bits & (2**112 - 1), bits >> 112 & 0x7FFF
    value = Fraction(fraction + 2**112) * Fraction(2) ** (exponent - 16383 - 112)
    return -value if bits >> 127 else value
