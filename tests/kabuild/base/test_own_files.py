"""kabuild's own files are plain files again, whatever was made of them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kabuild.base.own_files import open_own, write_own
from kabuild.base.reading import NO_FILE, read_plain


def _directory(path: Path) -> None:
    (path / "below").mkdir(parents=True)


def _link(path: Path) -> None:
    path.symlink_to(path.with_name("precious"))


STRANGE: list[Callable[[Path], None]] = [
    os.mkfifo,
    _directory,
    _link,
    lambda path: path.symlink_to(path.name),
    lambda path: path.symlink_to("/dev/zero"),
]


@pytest.mark.parametrize("make", STRANGE, ids=["pipe", "directory", "link", "loop", "device"])
def test_what_lies_in_their_place_goes_and_nothing_else(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    for name in ("written", "opened"):
        make(tmp_path / name)

    if not (tmp_path / "written").is_file():  # the link alone leads to a file
        with pytest.raises(OSError) as refused:  # noqa: PT011 - its number is what matters
            read_plain(tmp_path / "written")
        assert refused.value.errno in NO_FILE
    write_own(tmp_path / "written", b"mine")
    descriptor = open_own(tmp_path / "opened")
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)

    assert read_plain(tmp_path / "written") == b"mine"
    assert precious.read_bytes() == b"precious"
    assert not (tmp_path / "opened").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["opened", "precious", "written"]


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    for name in (".plain.0123456789ab.tmp", ".other.0123456789ab.tmp"):
        (tmp_path / name).write_text("half")

    write_own(tmp_path / "plain", b"whole")

    assert {path.name for path in tmp_path.iterdir()} == {"plain", ".other.0123456789ab.tmp"}


def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    with (tmp_path / ".plain.0123456789ab.tmp").open("w") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        write_own(tmp_path / "plain", b"whole")

        assert Path(busy.name).exists()
