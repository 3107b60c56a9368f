"""Readers see all of a file or none of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.fs import atomic_write, is_inside


@pytest.mark.parametrize("durable", [False, True])
def test_write_makes_parents_and_replaces(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a" / "b"
    atomic_write(path, b"one", durable=durable)
    atomic_write(path, b"two", mode=0o755, durable=durable)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o755
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()
    (path / "kept").write_text("x")
    with pytest.raises(OSError, match=r".+"):
        atomic_write(path, b"data")
    assert [item.name for item in tmp_path.iterdir()] == ["file"]
    assert (path / "kept").read_text() == "x"


@pytest.mark.parametrize("path", ["", "/", "/a", "..", "a/..", "../a", "a/../b", "a\0b"])
def test_paths_that_leave_their_root(path: str) -> None:
    assert not is_inside(path)


@given(st.lists(st.text("ab.", min_size=1).filter(lambda part: part != ".."), min_size=1))
def test_paths_that_stay(parts: list[str]) -> None:
    assert is_inside("/".join(parts))
