"""Readers see all of a file or none of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.fs import atomic_write, is_inside, remove_tree, replace_in, write_new


@pytest.mark.parametrize("durable", [False, True])
def test_write_makes_parents_and_replaces(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a" / "b"
    atomic_write(path, b"one", durable=durable)
    atomic_write(path, b"two", mode=0o755, durable=durable)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o755
    assert list(path.parent.iterdir()) == [path]


def test_a_file_with_several_names_keeps_them(tmp_path: Path) -> None:
    """A rename would leave the old content under the other names."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"old and longer")
    os.link(one, other)

    atomic_write(one, b"new")

    assert other.read_bytes() == b"new"
    assert one.samefile(other)


def test_a_read_only_file_with_several_names_is_replaced(tmp_path: Path) -> None:
    """As what ``out/`` shows of the store."""
    blob, shown = tmp_path / "blob", tmp_path / "shown"
    blob.write_bytes(b"old")
    blob.chmod(0o555)
    os.link(blob, shown)

    atomic_write(shown, b"new")

    assert blob.read_bytes() == b"old"
    assert shown.read_bytes() == b"new"


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


def test_remove_tree_removes_read_only_trees_and_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / "inner" / "file").touch(0o444)
    (tree / "link").symlink_to(outside)
    (tree / "inner").chmod(0o555)
    tree.chmod(0o555)

    remove_tree(tree)

    assert not tree.exists()
    assert (outside / "kept").exists()


def test_remove_tree_removes_a_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")

    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "absent")

    assert [item.name for item in tmp_path.iterdir()] == ["kept"]


def test_a_new_file_is_whole_and_has_its_mode(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    before = os.umask(0o077)
    try:
        status = write_new(str(tmp_path / "a"), data, 0o555)
        write_new(str(tmp_path / "b"), b"")
    finally:
        os.umask(before)

    assert (tmp_path / "a").read_bytes() == data
    assert stat.S_IMODE(status.st_mode) == stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o555
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write_new(str(tmp_path / "a"), b"other")
    assert (tmp_path / "a").read_bytes() == data


def test_a_file_is_renamed_into_a_directory_that_is_not_there(tmp_path: Path) -> None:
    for text in ("one", "two"):
        (tmp_path / "new").write_text(text)
        replace_in(str(tmp_path / "new"), str(tmp_path / "a/b/c"))
        assert (tmp_path / "a/b/c").read_text() == text
    with pytest.raises(FileNotFoundError):
        replace_in(str(tmp_path / "new"), str(tmp_path / "a/b/c"))
