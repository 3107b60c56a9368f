"""Which files of a checkout were changed, told from an index that git wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kabuild.imports.git_index import changed_files

NAMES = [f"{home}task_{number}.py" for home in ("", "level1/", "level1/deep/") for number in (1, 2)]


def git(root: Path, *words: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(root), *author, *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "bench"
    for name in NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n")
    git(tmp_path, "init", "-q", str(root))
    git(root, "add", ".")
    git(root, "commit", "-qm", "all")
    return root


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_file_with_another_content_is_named(checkout: Path, version: int) -> None:
    git(checkout, "update-index", "--index-version", str(version))
    assert changed_files(checkout, NAMES) == ()

    (checkout / NAMES[3]).write_text("# another\n")
    (checkout / "new.py").write_text("# new\n")

    assert changed_files(checkout, [*NAMES, "new.py"]) == (NAMES[3], "new.py")


def test_flags_that_need_more_room_are_skipped(checkout: Path) -> None:
    (checkout / "later.py").write_text("# to be added\n")
    git(checkout, "add", "--intent-to-add", "later.py")
    (checkout / NAMES[-1]).write_text("# another\n")

    assert changed_files(checkout, [*NAMES, "later.py"]) == (NAMES[-1], "later.py")


def test_a_worktree_has_an_index_of_its_own(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "tree" / NAMES[0]).write_text("# another\n")

    assert changed_files(tmp_path / "tree", NAMES) == (NAMES[0],)
    assert changed_files(checkout, NAMES) == ()


def test_links_and_what_is_behind_them_do_not_count(checkout: Path) -> None:
    (checkout / "link.py").symlink_to(NAMES[0])
    (checkout / "linked").symlink_to("level1")
    git(checkout, "add", "link.py")

    assert changed_files(checkout, ["link.py", "linked/task_1.py"]) == ()


LONG = b"DIRC\0\0\0\x02\0\0\0\x01" + bytes(62) + b"a" * 5000 + bytes(8)


@pytest.mark.parametrize("index", [b"", b"DIRC", b"DIRC\0\0\0\x09\0\0\0\x01", b"\xff" * 200, LONG])
def test_nothing_is_said_of_an_index_that_cannot_be_read(checkout: Path, index: bytes) -> None:
    (checkout / NAMES[0]).write_text("# another\n")
    (checkout / ".git/index").write_bytes(index)

    assert changed_files(checkout, NAMES) == ()
    assert changed_files(checkout.parent, ["bench/task_1.py"]) == ()


def test_a_truncated_index_is_as_good_as_none(checkout: Path) -> None:
    (checkout / NAMES[0]).write_text("# another\n")
    data = (checkout / ".git/index").read_bytes()
    for length in range(0, len(data) - 20, 7):
        (checkout / ".git/index").write_bytes(data[:length])
        assert changed_files(checkout, NAMES[:1]) in {(), (NAMES[0],)}
