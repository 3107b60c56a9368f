"""The collector: oldest use first, never what is pinned or in use."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import DiskCas, Store, gc
from kabuild.store.paths import TOOLCHAINS

OLD = 1_600_000_000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def put(store: Store, data: bytes, used: int) -> Digest:
    """A blob that was last used at ``used``."""
    digest = store.cas.put(data)
    assert isinstance(store.cas, DiskCas)
    os.utime(store.cas.path_of(digest), (used, used))
    return digest


def present(store: Store, digest: Digest) -> bool:
    """Whether the blob is there; not a use."""
    assert isinstance(store.cas, DiskCas)
    return Path(store.cas.path_of(digest)).exists()


def test_the_oldest_go_until_the_limit_holds(store: Store) -> None:
    blobs = [put(store, bytes([n]) * 100, OLD + n) for n in range(5)]

    done = gc.collect(store.root, 250)

    assert [present(store, blob) for blob in blobs] == [False, False, False, True, True]
    assert (done.files, done.bytes, done.remaining) == (3, 300, 200)


def test_pinned_blobs_stay(store: Store) -> None:
    blobs = [put(store, bytes([n]) * 100, OLD + n) for n in range(3)]

    gc.collect(store.root, 0, pinned={blobs[0]})

    assert [present(store, blob) for blob in blobs] == [True, False, False]


def test_what_was_used_just_now_stays(store: Store) -> None:
    old, new = put(store, b"old", OLD), put(store, b"new", int(time.time()))

    done = gc.collect(store.root, 0)

    assert not present(store, old)
    assert present(store, new)
    assert done.remaining == 3


def test_a_use_between_listing_and_eviction_saves_a_blob(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = put(store, b"blob", OLD)
    real = gc._unused

    def used_meanwhile(entry: gc._Entry) -> bool:
        assert store.cas.has(blob)
        return real(entry)

    monkeypatch.setattr(gc, "_unused", used_meanwhile)
    gc.collect(store.root, 0)

    assert present(store, blob)


def test_a_dry_run_removes_nothing(store: Store) -> None:
    blob = put(store, b"blob", OLD)

    assert gc.collect(store.root, 0, dry_run=True).bytes == 4
    assert present(store, blob)


def test_an_entry_whose_blob_went_is_a_miss(store: Store) -> None:
    blob, key = put(store, b"blob", OLD), Digest.of(b"key")
    store.actions.put(key, ActionResult(0, (OutputFile("x", blob),)))

    gc.collect(store.root, 0)

    assert store.actions.get(key) is None


def test_an_empty_store_needs_no_collecting(tmp_path: Path) -> None:
    assert gc.collect(tmp_path / "none", 10) == gc.Collected(0, 0, 0)


@given(sizes=st.lists(st.integers(1, 50), max_size=12, unique=True), limit=st.integers(0, 400))
@settings(max_examples=25, deadline=None)
def test_it_keeps_the_newest_that_fit(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int
) -> None:
    store = Store.open(tmp_path_factory.mktemp("gc"))
    blobs = [put(store, b"x" * size, OLD + age) for age, size in enumerate(sizes)]

    done = gc.collect(store.root, limit)

    kept = [present(store, blob) for blob in blobs]
    assert kept == sorted(kept), "whatever is newer than a kept blob is kept"
    assert done.remaining == sum(s for s, k in zip(sizes, kept, strict=True) if k) <= limit
    gone = [size for size, keep in zip(sizes, kept, strict=True) if not keep]
    assert not gone or done.remaining + gone[-1] > limit, "no more than necessary"


def toolchain(store: Store, name: str, used: int, *, size: int = 100) -> Path:
    """An unpacked toolchain that was last used at ``used``."""
    home = store.root / TOOLCHAINS / name.ljust(64, "0")
    (home / "tree").mkdir(parents=True)
    (home / "tree" / "file").write_bytes(b"x" * size)
    (home / "tree").chmod(0o555)
    (home / "used").touch()
    os.utime(home / "used", (used, used))
    return home


def test_toolchains_go_like_everything_else(store: Store) -> None:
    blob = put(store, b"x" * 100, OLD + 1)
    old, new = toolchain(store, "a", OLD), toolchain(store, "b", OLD + 2)

    done = gc.collect(store.root, 200)

    assert not old.exists()
    assert new.exists()
    assert present(store, blob)
    assert done.remaining == 200


def test_pinned_toolchains_stay(store: Store) -> None:
    old = toolchain(store, "a", OLD)

    gc.collect(store.root, 0, toolchains={old.name})

    assert old.exists()


def test_a_toolchain_that_is_being_fetched_stays(store: Store) -> None:
    old = toolchain(store, "a", OLD)

    with old.with_name(f"{old.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        gc.collect(store.root, 0)

    assert old.exists()
