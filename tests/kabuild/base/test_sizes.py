"""Sizes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.sizes import parse_size, show_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("7", 7), ("1k", 1024), ("1.5M", 3 << 19), ("20G", 20 << 30), ("2 TiB", 2 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1X", "1 000", "1e9", "0x10", "1.", "9" * 13])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid size; write 20G or 500M"):
        parse_size(text)


@given(st.integers(0, 1 << 50))
def test_what_is_shown_is_understood(size: int) -> None:
    assert abs(parse_size(show_size(size)) - size) <= size * 0.05
