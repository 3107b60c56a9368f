"""What an engine staged is hashed, and nothing outside of it is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kabuild.store import Store
from kabuild.store.merkle import Directory, FileNode
from kabuild.worker.intake import ForeignDirectoryError, read_staged_note, take_in


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as store:
        yield store


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """An action with a file, an empty directory, and what an engine makes for outputs."""
    top = tmp_path / "top"
    (top / "exec/a/empty").mkdir(parents=True)
    (top / "exec/out/d").mkdir(parents=True)
    (top / "exec/a/f").write_text("x")
    (top / "exec/a/f").chmod(0o755)
    (top / "wire.json").write_text("note")
    return top


def opened(top: Path) -> int:
    return os.open(top, os.O_RDONLY | os.O_DIRECTORY)


def test_a_staged_tree_is_what_it_holds(top: Path, store: Store) -> None:
    descriptor = opened(top)

    first, again = take_in(descriptor, store.cas), take_in(descriptor, store.cas)

    file = FileNode(store.cas.put(b"x"), executable=True)
    inner = Directory({"f": file}, {"empty": Directory({}, {})})
    assert first.root == again.root == Directory({}, {"a": inner})
    assert [(taken.found, taken.new) for taken in (first, again)] == [(0, 1), (1, 0)]
    assert read_staged_note(descriptor) == b"note"
    os.close(descriptor)


def test_a_damaged_blob_of_the_store_is_taken_in_again(top: Path, store: Store) -> None:
    descriptor = opened(top)
    take_in(descriptor, store.cas)
    digest = store.cas.put(b"x")
    blob = store.root / "cas" / digest.hash[:2] / digest.hash
    blob.chmod(0o644)
    blob.write_bytes(b"y")

    again = take_in(descriptor, store.cas)

    assert (again.found, again.new) == (0, 1)
    assert store.cas.get(digest) == b"x"
    os.close(descriptor)


def _deep(top: Path) -> None:
    here = top / "exec/a"
    for _ in range(300):
        here /= "d"
        here.mkdir()


def _linked(tree: Path) -> None:
    tree.rename(tree.parent / "other")
    tree.symlink_to("other")


BAD: dict[str, Callable[[Path], object]] = {
    "a link to a file": lambda top: (top / "exec/a/g").symlink_to("f"),
    "a link to a directory": lambda top: (top / "exec/b").symlink_to("/etc"),
    "a pipe": lambda top: os.mkfifo(top / "exec/a/p"),
    "directories without end": _deep,
    "no tree": lambda top: (top / "exec").rename(top / "other"),
    "a link for a tree": lambda top: _linked(top / "exec"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_no_engine_stages_is_refused(top: Path, store: Store, name: str) -> None:
    BAD[name](top)
    descriptor = opened(top)

    with pytest.raises(ForeignDirectoryError):
        take_in(descriptor, store.cas)

    os.close(descriptor)


@pytest.mark.parametrize("kind", ["absent", "a link", "a pipe", "a directory"])
def test_a_note_that_is_no_file_is_refused(top: Path, kind: str) -> None:
    note = top / "wire.json"
    note.unlink()
    if kind == "a link":
        note.symlink_to("/etc/passwd")
    elif kind == "a pipe":
        os.mkfifo(note)
    elif kind == "a directory":
        note.mkdir()
    descriptor = opened(top)

    with pytest.raises(ForeignDirectoryError):
        read_staged_note(descriptor)

    os.close(descriptor)
