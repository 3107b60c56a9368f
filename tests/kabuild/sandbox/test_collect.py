"""Collecting from a directory that hostile processes have left."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kabuild.sandbox.collect import Collector

Collect = Callable[..., list[tuple[str, str, str]]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "exec" / "out").mkdir(parents=True)
    return tmp_path / "exec"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    (tmp_path / "saved").mkdir()
    return tmp_path / "saved"


@pytest.fixture
def collect(root: Path, saved: Path) -> Iterator[Collect]:
    fd = os.open(saved, os.O_RDONLY)
    yield lambda *paths, limit=1 << 20: Collector(str(root), fd, limit).collect(paths)
    os.close(fd)


def test_files_and_trees_arrive_with_plain_modes(root: Path, saved: Path, collect: Collect) -> None:
    (root / "out/tree/sub").mkdir(parents=True)
    (root / "out/tree/sub/tool").write_bytes(b"x" * 100_000)
    (root / "out/tree/sub/tool").chmod(0o4711)
    (root / "out/tree/empty").mkdir(0o700)
    (root / "out/file").write_text("text")
    (root / "out/file").chmod(0o666)

    assert collect("out/tree", "out/file") == [
        ("out/tree", "directory", ""),
        ("out/file", "file", ""),
    ]
    assert (saved / "out/tree/sub/tool").read_bytes() == b"x" * 100_000
    modes = [stat.S_IMODE((saved / "out" / p).stat().st_mode) for p in ("tree/sub/tool", "file")]
    assert modes == [0o755, 0o644]
    assert (saved / "out/tree/empty").is_dir()


def test_a_file_that_was_saved_before_is_replaced(
    root: Path, saved: Path, collect: Collect
) -> None:
    (saved / "out").mkdir()
    (saved / "out/file").write_text("much longer than the new one")
    (root / "out/file").write_text("new")

    assert collect("out/file") == [("out/file", "file", "")]
    assert (saved / "out/file").read_text() == "new"


def test_a_link_at_the_destination_is_not_followed(
    root: Path, saved: Path, collect: Collect, tmp_path: Path
) -> None:
    (saved / "out").mkdir()
    (tmp_path / "victim").write_text("untouched")
    (saved / "out/file").symlink_to(tmp_path / "victim")
    (root / "out/file").write_text("new")

    with pytest.raises(OSError, match="symbolic links"):
        collect("out/file")
    assert (tmp_path / "victim").read_text() == "untouched"


@pytest.mark.parametrize("target", ["/etc/passwd", "file", "nowhere", "."])
def test_links_are_refused_whatever_they_point_to(
    root: Path, saved: Path, collect: Collect, target: str
) -> None:
    (root / "out/file").write_text("text")
    (root / "out/link").symlink_to(target)

    assert collect("out/link") == [("out/link", "refused", "link is a symbolic link")]
    assert not (saved / "out/link").exists()


def test_a_file_where_a_directory_was_declared_is_refused(root: Path, collect: Collect) -> None:
    (root / "out/dir").write_text("a file")

    assert collect("out/dir/x") == [("out/dir/x", "refused", "dir is not a directory")]


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes devices")
def test_devices_are_refused(root: Path, collect: Collect) -> None:
    os.mknod(root / "out/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))

    assert collect("out/null") == [("out/null", "refused", "null is a device")]


def test_a_sparse_file_does_not_fill_the_disk(root: Path, saved: Path, collect: Collect) -> None:
    with (root / "out/sparse").open("wb") as file:
        file.truncate(1 << 40)

    assert collect("out/sparse") == [
        ("out/sparse", "refused", f"sparse has {1 << 40} bytes, where {1 << 20} are left")
    ]
    assert not (saved / "out/sparse").exists()


def test_the_size_limit_is_for_all_outputs_together(root: Path, collect: Collect) -> None:
    for name in "abc":
        (root / "out" / name).write_bytes(bytes(400))

    found = collect("out/a", "out/b", "out/c", limit=1000)

    assert [kind for _, kind, _ in found] == ["file", "file", "refused"]


def test_endless_depth_is_refused(root: Path, collect: Collect) -> None:
    (root / "out" / "/".join(["d"] * 70)).mkdir(parents=True)

    assert collect("out/d") == [("out/d", "refused", "d is 64 directories deep")]


def test_a_name_that_is_no_text_is_refused(root: Path, collect: Collect) -> None:
    (root / "out/tree").mkdir()
    Path(os.fsdecode(os.fsencode(root / "out/tree") + b"/\xff")).touch()

    assert collect("out/tree") == [("out/tree", "refused", "the name b'\\xff' is not UTF-8")]


def test_what_is_not_there_is_missing(root: Path, collect: Collect) -> None:
    (root / "out/dir").mkdir()

    assert [kind for _, kind, _ in collect("out/x", "out/dir/x", "out/no/x")] == ["missing"] * 3


def test_a_destination_that_cannot_be_written_is_an_error(root: Path) -> None:
    """The disk of the host is full, say: no fault of what made the output."""
    (root / "out/file").write_text("text")
    fd = os.open("/proc/self", os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="out"):
            Collector(str(root), fd, 1000).collect(["out/file"])
    finally:
        os.close(fd)
