"""The one way from values to bytes: equal values have equal digests everywhere.

There are two forms: canonical JSON for values that people read (specs, verdicts, fingerprints), and
protobuf wire format for the messages of the Remote Execution API, from which keys are computed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def canonical_json(value: Any) -> bytes:
    """``value`` as UTF-8 JSON: keys sorted, no spaces, one newline at the end.

    Raises ``ValueError`` for NaN and infinities, and ``TypeError`` for values that JSON cannot
    hold.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode() + b"\n"


_SMALL = [bytes([value]) for value in range(0x80)]


def varint(value: int) -> bytes:
    """``value`` >= 0 in base 128, least significant group first."""
    if 0 <= value < 0x80:  # nearly all: tags, sizes of small fields
        return _SMALL[value]
    if value < 0:
        msg = f"varint of a negative number: {value}"
        raise ValueError(msg)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def int_field(number: int, value: int) -> bytes:
    """A varint field. Zero is the default and therefore absent, as in proto3."""
    return varint(number << 3) + varint(value) if value else b""


def bytes_field(number: int, value: bytes, *, keep_empty: bool = False) -> bytes:
    """A length-delimited field. Empty is absent unless it is a message or repeated."""
    if not value and not keep_empty:
        return b""
    return varint(number << 3 | 2) + varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    """A string field."""
    return bytes_field(number, value.encode())


def message_field(number: int, value: bytes) -> bytes:
    """A sub-message that is present, even when it is empty."""
    return bytes_field(number, value, keep_empty=True)


def repeated_field(number: int, values: Iterable[bytes]) -> bytes:
    """A repeated message or bytes field, in the given order."""
    return b"".join(bytes_field(number, value, keep_empty=True) for value in values)


MOST_FIELDS = 1 << 18
"""Fields of one message. A field of two bytes takes fifty times as much memory."""


def parse_fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """The (field number, value) pairs of one message, in the order of the bytes.

    Varint fields give ints, length-delimited ones bytes, fixed-width ones their bytes. Raises
    ``ValueError`` if ``data`` is not a protobuf message, or has too many fields.
    """
    fields: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        if len(fields) == MOST_FIELDS:
            raise ValueError(f"a message with more than {MOST_FIELDS} fields")
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _read_varint(data, at)
            fields.append((number, value))
            continue
        if kind == 2:
            if at < len(data) and data[at] < 0x80:
                size = data[at]
                at += 1
            else:
                size, at = _read_varint(data, at)
        elif kind in {1, 5}:
            size = 8 if kind == 1 else 4
        else:
            msg = f"unknown wire type {kind} at byte {at}"
            raise ValueError(msg)
        if at + size > len(data):
            msg = f"field {number} ends {at + size - len(data)} bytes past the message"
            raise ValueError(msg)
        fields.append((number, data[at : at + size]))
        at += size
    return fields


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            msg = f"unfinished varint at byte {at}"
            raise ValueError(msg)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
