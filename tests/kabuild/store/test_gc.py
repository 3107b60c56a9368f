"""The collector: oldest use first, results as a whole, never what is pinned or in use."""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kabuild.model.digest import Digest
from kabuild.store import Store, gc
from kabuild.store.build_memo import BuildMemo, BuildMemos
from kabuild.store.contents import Item, scan
from kabuild.store.paths import MEMORIES, TOOLCHAINS
from kabuild.store.usage import Usage
from kabuild.toolchain.tree_store import KIND, MANIFEST, TREE, USED, TreeStore
from tests.testkit.seal import SEAL

from .conftest import OLD, Shelf


def collect(shelf: Shelf, limit: int, **options: object) -> gc.Collected:
    done = gc.collect(shelf.root, limit, **options)  # type: ignore[arg-type]
    assert done is not None
    return done


def test_the_oldest_go_until_the_limit_holds(shelf: Shelf) -> None:
    blobs = [shelf.blob(bytes([n]) * 100, OLD + n) for n in range(5)]

    done = collect(shelf, 250)

    assert [shelf.has(blob) for blob in blobs] == [False, False, False, True, True]
    assert (done.blobs, done.bytes, done.remaining) == (3, 300, 200)


def test_a_result_goes_with_what_only_it_needs(shelf: Shelf) -> None:
    own, shared = shelf.blob(b"own" * 100), shelf.blob(b"shared" * 100)
    old = shelf.result("old", [own, shared], OLD)
    new = shelf.result("new", [shared], OLD + 1)

    done = collect(shelf, shelf.size() - 400)

    assert not shelf.knows(old)
    assert not shelf.has(own)
    assert shelf.knows(new)
    assert shelf.has(shared)
    assert done.results == 1
    assert shelf.store.actions.get(new) is not None


def test_a_blob_that_a_kept_result_needs_stays_however_old_it_is(shelf: Shelf) -> None:
    needed, loose = shelf.blob(b"needed", OLD), shelf.blob(b"loose", OLD + 5)
    key = shelf.result("kept", [needed], time.time())

    collect(shelf, 0)

    assert shelf.has(needed)
    assert not shelf.has(loose)
    assert shelf.store.actions.get(key) is not None


def test_the_trees_of_results_are_kept_with_all_in_them(shelf: Shelf) -> None:
    inside = shelf.blob(b"inside")
    key = shelf.result("tree", [inside], time.time(), directories=("d",))
    for item in scan(shelf.root).blobs.values():
        os.utime(item.path, (OLD, OLD))

    collect(shelf, 0)

    found = shelf.store.actions.get(key)
    assert found is not None
    assert [file.path for file in found.files] == ["d/0"]
    assert shelf.has(inside)


def test_what_says_what_a_result_is_of_is_kept_with_it(shelf: Shelf) -> None:
    key = shelf.result("x", [], time.time())
    shelf.age(key, OLD)

    collect(shelf, 0)

    assert shelf.has(key)


def test_pinned_blobs_stay(shelf: Shelf) -> None:
    blobs = [shelf.blob(bytes([n]) * 100, OLD + n) for n in range(3)]

    collect(shelf, 0, keep={blobs[0].hash})

    assert [shelf.has(blob) for blob in blobs] == [True, False, False]


def test_what_was_used_just_now_stays(shelf: Shelf) -> None:
    old, new = shelf.blob(b"old", OLD), shelf.blob(b"new", int(time.time()))

    done = collect(shelf, 0)

    assert not shelf.has(old)
    assert shelf.has(new)
    assert done.remaining == 3


def test_a_use_between_listing_and_eviction_saves_a_blob(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = shelf.blob(b"blob", OLD)
    real = gc._unused

    def used_meanwhile(item: Item) -> bool:
        os.utime(item.path)
        return real(item)

    monkeypatch.setattr(gc, "_unused", used_meanwhile)

    assert collect(shelf, 0).blobs == 0
    assert shelf.has(blob)


def test_a_use_between_listing_and_eviction_saves_all_of_a_result(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is touched first: then its blobs are not even candidates."""
    blob = shelf.blob(b"blob", OLD)
    key = shelf.result("x", [blob], OLD)
    real = gc._unused

    def used_meanwhile(item: Item) -> bool:
        if item.name == key.hash:
            os.utime(item.path)
        return real(item)

    monkeypatch.setattr(gc, "_unused", used_meanwhile)
    collect(shelf, 0)

    assert shelf.store.actions.get(key) is not None


def test_a_dry_run_removes_nothing_and_says_the_same(shelf: Shelf) -> None:
    shelf.result("x", [shelf.blob(b"blob", OLD)], OLD)
    size = shelf.size()

    foreseen = collect(shelf, 0, dry_run=True)

    assert shelf.size() == size
    assert foreseen == collect(shelf, 0)


def test_an_empty_store_needs_no_collecting(tmp_path: Path) -> None:
    assert gc.collect(tmp_path / "none", 10) == gc.Collected()


def test_files_of_others_are_left_alone(shelf: Shelf) -> None:
    shelf.blob(b"x")
    foreign = shelf.root / "cas" / "ab" / "notes.txt"
    foreign.parent.mkdir(parents=True, exist_ok=True)
    foreign.write_text("mine")
    os.utime(foreign, (OLD, OLD))

    collect(shelf, 0)

    assert foreign.exists()


def test_time_is_bounded_and_what_is_left_waits(shelf: Shelf) -> None:
    blobs = [shelf.blob(str(n).encode(), OLD) for n in range(3 * gc._BATCH)]

    done = collect(shelf, 0, seconds=0.0)

    assert not done.is_complete
    assert done.blobs == gc._BATCH
    assert sum(map(shelf.has, blobs)) == 2 * gc._BATCH
    assert collect(shelf, 0, seconds=60.0).is_complete


def test_one_collection_at_a_time(shelf: Shelf) -> None:
    with (shelf.root / "gc.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        assert gc.collect(shelf.root, 0, seconds=1.0) is None


def test_a_collection_sets_the_usage_right(shelf: Shelf) -> None:
    shelf.blob(b"x" * 100)
    shelf.blob(b"y" * 50, time.time())
    Usage(shelf.root).set(12345)

    collect(shelf, 0)

    assert Usage(shelf.root).total() == shelf.size() == 50


MEMORY = BuildMemo("cpu", "", [], 0, {}, ())


def test_earlier_answers_are_forgotten_when_results_go(shelf: Shelf) -> None:
    memories = BuildMemos(shelf.root / MEMORIES, shelf.store.seal)
    memories.write("request", MEMORY)
    shelf.blob(b"x")

    collect(shelf, 0)
    assert memories.read("request") is not None

    shelf.result("x", [])
    collect(shelf, 0)
    assert memories.read("request") is None


def test_a_remembered_answer_is_a_use_of_its_results(shelf: Shelf) -> None:
    """Answering looks at no result; it would be a pity to lose those that are asked for daily."""
    daily, never = shelf.result("daily", [], OLD), shelf.result("never", [], OLD + 1)
    BuildMemos(shelf.root / MEMORIES, shelf.store.seal).write("request", MEMORY, {"": [daily.hash]})

    collect(shelf, 0)

    assert shelf.knows(daily)
    assert not shelf.knows(never)


def toolchain(shelf: Shelf, name: str, used: int, *, size: int = 100) -> Path:
    """An unpacked toolchain that was last used at ``used``."""
    home = shelf.root / TOOLCHAINS / name.ljust(64, "0")
    (home / TREE).mkdir(parents=True)
    (home / TREE / "file").write_bytes(b"x" * size)
    (home / TREE).chmod(0o555)
    (home / MANIFEST).write_bytes(SEAL.wrap(KIND, home.name, b"{}"))
    (home / USED).write_text(str(size))
    os.utime(home / USED, (used, used))
    return home


def test_toolchains_go_like_everything_else(shelf: Shelf) -> None:
    blob = shelf.blob(b"x" * 100, OLD + 1)
    old, new = toolchain(shelf, "a", OLD), toolchain(shelf, "b", OLD + 2)

    done = collect(shelf, 200)

    assert not old.exists()
    assert new.exists()
    assert shelf.has(blob)
    assert done.remaining == 200


def test_pinned_toolchains_stay(shelf: Shelf) -> None:
    old = toolchain(shelf, "a", OLD)

    collect(shelf, 0, keep={old.name})

    assert old.exists()


def test_a_toolchain_that_is_being_fetched_stays(shelf: Shelf) -> None:
    old = toolchain(shelf, "a", OLD)

    with old.with_name(f"{old.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        collect(shelf, 0)

    assert old.exists()


def test_a_toolchain_that_a_running_build_uses_stays(shelf: Shelf) -> None:
    """However long ago it began: a compiler that vanishes looks like a kernel that is wrong."""
    old = toolchain(shelf, "a", OLD)
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        held = TreeStore(shelf.root / TOOLCHAINS, SEAL).use(old.name)
        os.utime(old / USED, (OLD, OLD))
        os.write(ready[1], b"y" if held else b"n")
        os.read(done[0], 1)
        os._exit(0)
    assert os.read(ready[0], 1) == b"y"
    os.utime(old / USED, (OLD, OLD))
    collect(shelf, 0)
    assert old.exists()

    os.write(done[1], b"x")
    os.waitpid(pid, 0)
    collect(shelf, 0)
    assert not old.exists()
    assert not TreeStore(shelf.root / TOOLCHAINS, SEAL).use(old.name)


def test_what_interrupted_fetches_left_goes(shelf: Shelf) -> None:
    left = shelf.root / TOOLCHAINS / f"{'a' * 64}.fetch"
    left.mkdir(parents=True)
    (left / "x.part").write_bytes(b"x" * 10)
    os.utime(left, (OLD, OLD))

    assert collect(shelf, 0).bytes == 10
    assert not left.exists()


@dataclass(frozen=True)
class Plan:
    """Results by age, each with the blobs that it needs, and blobs by age."""

    blobs: list[tuple[int, int]]
    results: list[tuple[int, list[int]]]
    limit: int
    pinned: list[int]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    ages = st.integers(0, 50)
    blobs = draw(st.lists(st.tuples(ages, st.integers(1, 60)), min_size=1, max_size=8))
    some = st.lists(st.integers(0, len(blobs) - 1), max_size=4, unique=True)
    results = draw(st.lists(st.tuples(ages, some), max_size=6))
    return Plan(blobs, results, draw(st.integers(0, 3000)), draw(some))


@given(plan=plans())
@settings(max_examples=60, deadline=None)
def test_a_result_that_is_kept_is_whole(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan
) -> None:
    """Whatever depends on whatever, at any limit; and no more goes than has to, oldest first."""
    shelf = Shelf(Store.open(tmp_path_factory.mktemp("shelf")))
    blobs = [
        shelf.blob(f"{n}:".encode().ljust(size + 4, b"x"), OLD + age)
        for n, (age, size) in enumerate(plan.blobs)
    ]
    keys = [
        shelf.result(str(n), [blobs[i] for i in needs], OLD + age)
        for n, (age, needs) in enumerate(plan.results)
    ]
    for blob, (age, _) in zip(blobs, plan.blobs, strict=True):
        shelf.age(blob, OLD + age)
    pins = {blobs[i].hash for i in plan.pinned}
    before = shelf.size()

    done = collect(shelf, plan.limit, keep=pins)

    assert done.remaining == before - done.bytes == shelf.size()
    kept = [(k, n) for n, k in enumerate(keys) if shelf.knows(k)]
    needed = {i for _, n in kept for i in plan.results[n][1]}
    assert all(shelf.has(blobs[i]) for i in needed | {*plan.pinned})
    assert all(shelf.has(key) for key, _ in kept), "what says what they are of"
    gone_results = [plan.results[n][0] for n, k in enumerate(keys) if not shelf.knows(k)]
    assert max(gone_results, default=0) <= min((plan.results[n][0] for _, n in kept), default=99)
    if done.remaining > plan.limit:
        assert not kept
        assert {i for i, b in enumerate(blobs) if shelf.has(b)} == {*plan.pinned}
    for key, _ in kept:
        assert shelf.store.actions.get(key) is not None


def test_a_lost_result_is_no_obstacle(shelf: Shelf) -> None:
    blob = shelf.blob(b"blob")
    key = shelf.result("x", [blob])
    shelf.blob_path(blob).unlink()
    (shelf.root / "ac" / "00").mkdir(parents=True, exist_ok=True)
    (shelf.root / "ac" / "00" / ("0" * 64)).write_bytes(b"nonsense")

    collect(shelf, 0)

    assert not shelf.knows(key)


def test_a_digest_is_all_that_a_pin_needs(shelf: Shelf) -> None:
    key = shelf.result("x", [shelf.blob(b"b")])

    collect(shelf, 0, keep={key.hash})

    assert shelf.store.actions.get(Digest(key.hash, 0)) is not None
