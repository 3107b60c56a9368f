"""Values have one form as bytes."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.canonical import (
    bytes_field,
    canonical_json,
    int_field,
    message_field,
    parse_fields,
    repeated_field,
    text_field,
    varint,
)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_json_reads_back(value: Any) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(st.text(), st.integers(), max_size=6), st.randoms())
def test_order_of_keys_changes_nothing(value: dict[str, int], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert canonical_json(dict(items)) == canonical_json(value)


def test_json_is_compact_utf8_with_one_newline() -> None:
    assert canonical_json({"b": [1, 2], "a": "é"}) == '{"a":"é","b":[1,2]}\n'.encode()


@pytest.mark.parametrize("value", [math.nan, math.inf, {"x": [-math.inf]}])
def test_json_refuses_what_reads_back_as_something_else(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(value)


def test_json_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(TypeError):
        canonical_json({"x": {1, 2}})


@given(st.integers(0, 2**63 - 1))
def test_varints_are_minimal_and_read_back(value: int) -> None:
    data = varint(value)
    assert len(data) == max(1, -(-value.bit_length() // 7))
    if value:
        assert parse_fields(int_field(3, value)) == [(3, value)]


def test_varint_refuses_negative_numbers() -> None:
    with pytest.raises(ValueError, match="negative"):
        varint(-1)


def test_default_values_are_absent_and_messages_are_not() -> None:
    assert int_field(1, 0) == text_field(1, "") == bytes_field(1, b"") == b""
    assert message_field(1, b"") == b"\x0a\x00"
    assert repeated_field(2, [b"", b"x"]) == b"\x12\x00\x12\x01x"


fields = st.lists(
    st.tuples(st.integers(1, 2**20), st.integers(1, 2**63 - 1) | st.binary(max_size=300)),
    max_size=8,
)


@given(fields)
def test_messages_read_back(values: list[tuple[int, int | bytes]]) -> None:
    data = b"".join(
        int_field(number, value) if isinstance(value, int) else message_field(number, value)
        for number, value in values
    )
    assert parse_fields(data) == values


def test_fixed_width_fields_keep_their_bytes() -> None:
    assert parse_fields(b"\x0d\x01\x02\x03\x04") == [(1, b"\x01\x02\x03\x04")]
    assert parse_fields(b"\x09" + bytes(8)) == [(1, bytes(8))]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x08", "unfinished varint"),
        (b"\x08" + b"\xff" * 11, "unfinished varint"),
        (b"\x0a\x05ab", "past the message"),
        (b"\x0b", "wire type 3"),
    ],
)
def test_malformed_messages_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_fields(data)


def _dynamic_message() -> Any:
    """A message class of Google's library with a field of every kind that we write."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    proto = descriptor_pb2.FileDescriptorProto(name="probe.proto", package="probe", syntax="proto3")
    message = proto.message_type.add(name="Probe")
    kinds = {"number": 3, "text": 9, "data": 12, "items": 12}
    for index, (name, kind) in enumerate(kinds.items(), start=1):
        label = 3 if name == "items" else 1
        message.field.add(name=name, number=index * 7, type=kind, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(proto)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("probe.Probe"))


@given(
    st.integers(0, 2**63 - 1),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.lists(st.binary(), max_size=4),
)
def test_our_bytes_are_those_of_the_protobuf_library(
    number: int, text: str, data: bytes, items: list[bytes]
) -> None:
    ours = (
        int_field(7, number)
        + text_field(14, text)
        + bytes_field(21, data)
        + repeated_field(28, items)
    )
    theirs = _dynamic_message()(number=number, text=text, data=data, items=items)
    assert ours == theirs.SerializeToString(deterministic=True)
