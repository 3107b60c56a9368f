from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messagepack import unpack

NUMBERS = (
    *((0xD3, ">q", -(1 << 63), (1 << 63) - 1), (0xCF, ">Q", 0, (1 << 64) - 1)),
    *((0xD2, ">i", -(1 << 31), (1 << 31) - 1), (0xCE, ">I", 0, (1 << 32) - 1)),
    *((0xD1, ">h", -(1 << 15), (1 << 15) - 1), (0xCD, ">H", 0, (1 << 16) - 1)),
    *((0xD0, ">b", -128, 127), (0xCC, ">B", 0, 255)),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=70)
    | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=20,
)


def pack(value: Any) -> bytes:
    """The shortest encoding, as the specification has it."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        if -32 <= value < 128:
            return struct.pack(">b", value)
        kind, layout = [(k, form) for k, form, low, high in NUMBERS if low <= value <= high][-1]
        return bytes([kind]) + struct.pack(layout, value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        return head(len(data), 0xA0, 32, (0xD9, 0xDA, 0xDB)) + data
    if isinstance(value, bytes):
        return head(len(value), 0, 0, (0xC4, 0xC5, 0xC6)) + value
    if isinstance(value, list):
        return head(len(value), 0x90, 16, (None, 0xDC, 0xDD)) + b"".join(map(pack, value))
    pairs = (pack(key) + pack(item) for key, item in value.items())
    return head(len(value), 0x80, 16, (None, 0xDE, 0xDF)) + b"".join(pairs)


def head(length: int, short: int, short_most: int, kinds: tuple[int | None, ...]) -> bytes:
    if length < short_most:
        return bytes([short | length])
    for kind, layout, most in zip(kinds, (">B", ">H", ">I"), (255, 65535, 1 << 32), strict=True):
        if kind is not None and length <= most:
            return bytes([kind]) + struct.pack(layout, length)
    raise AssertionError(length)


@given(VALUES)
def test_reads_what_the_specification_writes(value: Any) -> None:
    assert unpack(pack(value)) == value


@given(VALUES)
def test_a_value_that_is_cut_short_is_malformed(value: Any) -> None:
    data = pack(value)

    with pytest.raises(ValueError, match="malformed MessagePack"):
        unpack(data[:-1])


@given(st.binary(max_size=64))
def test_any_bytes_are_a_value_or_malformed(data: bytes) -> None:
    with suppress(ValueError):
        unpack(data)
