"""Sparse files of a terabyte in a store: damaged entries, which take neither memory nor time."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from kabuild.base.reading import MOST_BYTES, read_plain
from kabuild.model.graph import ActionGraph
from kabuild.scheduler.plan import History
from kabuild.store import Store
from kabuild.store.build_memo import BuildMemos, MemoTable
from kabuild.store.gc import collect
from kabuild.store.paths import MEMORIES
from kabuild.store.verify import check, unsealed_files

from .conftest import OLD, Shelf

HUGE = 1 << 40


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """An address space that an unbounded read of ``HUGE`` bytes does not fit into."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (HUGE // 2, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def grow(path: Path) -> None:
    """Make a file one of ``HUGE`` bytes without blocks; its beginning stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    path.chmod(0o644)
    os.truncate(path, HUGE)
    os.utime(path, (OLD, OLD))


def test_a_file_is_read_to_its_limit_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")

    assert read_plain(path, 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_plain(path, 4)
    assert read_plain(Path("/proc/self/status")).startswith(b"Name:"), "its size is 0"
    grow(path)
    with pytest.raises(OSError, match=f"more than {MOST_BYTES:,} bytes"):
        read_plain(path)


def test_an_entry_is_dropped_and_judged_again(shelf: Shelf) -> None:
    key, whole = shelf.result("x", [shelf.blob(b"a")]), shelf.result("y", [shelf.blob(b"b")])
    grow(shelf.result_path(key))

    assert shelf.store.actions.get(key) is None
    assert not shelf.knows(key)
    assert shelf.store.actions.get(whole) is not None


def test_verify_removes_what_is_too_large(shelf: Shelf) -> None:
    key, blob = shelf.result("x", [shelf.blob(b"a")]), shelf.blob(b"b")
    whole = shelf.result("y", [shelf.blob(b"c")])
    files = [shelf.root / name for name in ("index", "records.json", f"{MEMORIES}/request.json")]
    for path in (shelf.result_path(key), shelf.blob_path(blob), *files):
        grow(path)

    found = check(shelf.root, shelf.store.seal, remove=True).damages

    assert {item.kind for item in found} == {"blob", "result", "file index", "records"}
    assert all("more than" in item.problem and item.removed for item in found)
    assert check(shelf.root, shelf.store.seal).damages == ()
    assert shelf.knows(whole)
    assert not any(path.exists() for path in files)


def test_collecting_goes_on(shelf: Shelf) -> None:
    """Past an entry, a tree and an action that are larger than all memory."""
    shelf.result("x", [shelf.blob(b"content")], directories=("d",))
    for path in shelf.root.glob("cas/*/*"):
        grow(path)
    grow(shelf.result_path(shelf.result("y", [shelf.blob(b"z")])))

    collect(shelf.root, 0)

    assert shelf.size() == 0


def test_files_that_only_save_time_are_ignored(shelf: Shelf, tmp_path: Path) -> None:
    store = shelf.store
    file = tmp_path / "file"
    file.write_text("content")
    for name in ("index", "timings.json", "usage"):
        grow(shelf.root / name)
    for suffix in (".json", ".results"):
        grow(shelf.root / MEMORIES / f"request{suffix}")

    with Store.open(shelf.root) as again:
        assert again.index.digest(str(file))[0] == store.cas.put(b"content")
    assert BuildMemos(shelf.root / MEMORIES, store.seal).read("request") is None
    assert MemoTable(shelf.root / MEMORIES).uses() == {}
    assert History(store.timings).estimates(ActionGraph()) == {}
    assert len([*unsealed_files(shelf.root, store.seal)]) == 2
