"""Reading the store again: every damage is found, named with what it breaks, and removed."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kabuild.store import Store, verify
from kabuild.store.build_memo import BuildMemo, BuildMemos
from kabuild.store.paths import MEMORIES
from kabuild.store.result_closure import named_by
from kabuild.store.verify import check
from tests.testkit.seal import SEAL

from .conftest import OLD, Shelf


def damage(path: Path, data: bytes | None = None) -> None:
    """Change one bit, or all, and nothing else: same size, same times."""
    status = path.stat()
    path.chmod(0o644)
    old = path.read_bytes()
    path.write_bytes(data if data is not None else bytes([old[0] ^ 1]) + old[1:])
    path.chmod(0o555)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_good_store(shelf: Shelf) -> None:
    shelf.result("x", [shelf.blob(b"a"), shelf.blob(b"b")], directories=("d",))

    checked = check(shelf.root, shelf.store.seal)

    assert checked.damages == ()
    assert checked.results == 1
    assert checked.bytes == shelf.size()


def test_no_store(tmp_path: Path) -> None:
    assert check(tmp_path / "none", SEAL).damages == ()


def test_a_damaged_blob_and_what_it_breaks(shelf: Shelf) -> None:
    bad, good = shelf.blob(b"bad"), shelf.blob(b"good")
    broken = {shelf.result(name, [bad, good]).hash for name in "ab"}
    shelf.result("whole", [good])
    damage(shelf.blob_path(bad))

    (found,) = check(shelf.root, shelf.store.seal).damages

    assert (found.kind, found.name, {*found.breaks}) == ("blob", bad.hash, broken)
    assert "its content is" in found.problem
    assert shelf.has(bad), "nothing is removed unasked"


def test_removing_makes_room_for_what_is_made_again(shelf: Shelf) -> None:
    bad = shelf.blob(b"bad")
    broken, whole = shelf.result("a", [bad]), shelf.result("b", [])
    memories = BuildMemos(shelf.root / MEMORIES, shelf.store.seal)
    memories.write("request", BuildMemo("cpu", "", [], 0, {}, ()))
    damage(shelf.blob_path(bad))

    assert all(item.removed for item in check(shelf.root, shelf.store.seal, remove=True).damages)

    assert not shelf.has(bad)
    assert shelf.store.actions.get(broken) is None
    assert shelf.store.actions.get(whole) is not None
    assert memories.read("request") is None
    assert check(shelf.root, shelf.store.seal).damages == ()
    shelf.store.cas.put(b"bad")
    assert shelf.store.cas.get(bad) == b"bad"


def test_a_damaged_tree_breaks_its_result(shelf: Shelf) -> None:
    inside = shelf.blob(b"inside")
    key = shelf.result("x", [inside], directories=("d",))
    _, (digest,) = named_by(shelf.result_path(key).read_bytes())
    tree = shelf.blob_path(digest)
    damage(tree, b"?" * tree.stat().st_size)

    (found,) = check(shelf.root, shelf.store.seal).damages

    assert (found.name, found.breaks) == (tree.name, (key.hash,))


@pytest.mark.parametrize("entry", [b"", b"nonsense", b"\x12\x03abc"])
def test_a_damaged_entry(shelf: Shelf, entry: bytes) -> None:
    key = shelf.result("x", [shelf.blob(b"a")])
    shelf.result_path(key).write_bytes(entry)

    (found,) = check(shelf.root, shelf.store.seal, remove=True).damages

    assert (found.kind, found.name) == ("result", key.hash)
    assert not shelf.knows(key)


def test_a_result_whose_blob_is_gone(shelf: Shelf) -> None:
    blob = shelf.blob(b"a")
    key = shelf.result("x", [blob])
    shelf.blob_path(blob).unlink()

    (found,) = check(shelf.root, shelf.store.seal).damages

    assert (found.kind, found.name) == ("result", key.hash)
    assert str(blob) in found.problem


def test_what_is_no_file_and_what_lies_elsewhere(shelf: Shelf) -> None:
    one, two, three = shelf.blob(b"1"), shelf.blob(b"2"), shelf.blob(b"3")
    shelf.blob_path(one).unlink()
    shelf.blob_path(one).mkdir()
    shelf.blob_path(two).unlink()
    shelf.blob_path(two).symlink_to(shelf.blob_path(three))
    misplaced = shelf.root / "cas" / "zz" / three.hash
    misplaced.parent.mkdir()
    shelf.blob_path(three).rename(misplaced)

    found = check(shelf.root, shelf.store.seal, remove=True).damages

    assert {item.name for item in found} == {one.hash, two.hash, three.hash}
    assert not any(map(shelf.has, (one, two)))
    assert not misplaced.exists()


def test_reading_is_no_use(shelf: Shelf) -> None:
    blob = shelf.blob(b"a", OLD)
    shelf.result("x", [blob], OLD)

    check(shelf.root, shelf.store.seal)

    assert shelf.blob_path(blob).stat().st_mtime == OLD


def test_a_blob_that_was_made_again_meanwhile_stays(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = shelf.blob(b"a" * 10)
    damage(shelf.blob_path(blob))
    real = verify._remove

    def made_again(*args: object) -> object:
        shelf.blob_path(blob).unlink()
        shelf.store.cas.put(b"a" * 10)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(verify, "_remove", made_again)
    check(shelf.root, shelf.store.seal, remove=True)

    assert shelf.store.cas.get(blob) == b"a" * 10


@given(seed=st.integers(0, 1 << 30), count=st.integers(0, 6))
@settings(max_examples=25, deadline=None)
def test_every_damage_is_found_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int
) -> None:
    """Whatever bytes change wherever, of however many blobs."""
    choose = random.Random(seed)
    shelf = Shelf(Store.open(tmp_path_factory.mktemp("shelf")))
    blobs = [shelf.blob(choose.randbytes(choose.randrange(1, 5000))) for _ in range(10)]
    results = {
        shelf.result(str(n), needs).hash: {b.hash for b in needs}
        for n, needs in enumerate(choose.sample(blobs, choose.randrange(4)) for _ in range(5))
    }
    bad = choose.sample(blobs, count)
    for blob in bad:
        data = bytearray(shelf.blob_path(blob).read_bytes())
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
        damage(shelf.blob_path(blob), bytes(data))

    found = {item.name: {*item.breaks} for item in check(shelf.root, shelf.store.seal).damages}

    assert found == {b.hash: {k for k, n in results.items() if b.hash in n} for b in bad}
