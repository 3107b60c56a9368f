"""The umask while files are made."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kabuild.base.umask import sparing_owner


def mask() -> int:
    """The umask of this process."""
    found = os.umask(0o77)
    os.umask(found)
    return found


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    before = mask()
    yield
    os.umask(before)


@pytest.mark.parametrize(("before", "inside"), [(0o777, 0o77), (0o27, 0o27), (0o722, 0o22)])
def test_only_the_owner_is_spared_and_only_inside(before: int, inside: int) -> None:
    os.umask(before)
    with sparing_owner():
        assert mask() == inside
    assert mask() == before


def test_the_last_to_leave_puts_it_back() -> None:
    os.umask(0o777)
    first, second = sparing_owner(), sparing_owner()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert mask() == 0o77
    second.__exit__(None, None, None)
    assert mask() == 0o777
