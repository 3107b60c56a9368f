"""Opening, closing and finding the store; temporary files of the dead."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from kabuild.store import Store, default_path
from kabuild.store.eviction import COLLECTING
from kabuild.store.scratch import Scratch
from kabuild.store.users import user
from kabuild.toolchain.tree_store import _HELD, TreeStore
from tests.testkit.seal import SEAL


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"KABUILD_CACHE": "/a/b", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/kabuild"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/kabuild"),
        ({"HOME": "/h"}, "/h/.cache/kabuild"),
        ({"KABUILD_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/kabuild"),
    ],
)
def test_where_the_store_is(env: dict[str, str], expected: str) -> None:
    assert default_path(env) == Path(expected)


def test_a_store_that_only_reads_leaves_no_traces(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        digest = store.cas.put(b"x")
    before = sorted(tmp_path.rglob("*"))

    with Store.open(tmp_path) as store:
        store.cas.get(digest)

    assert sorted(tmp_path.rglob("*")) == before


def test_closing_removes_scratch_and_saves_the_index(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    os.utime(source, (1, 1))
    with Store.open(tmp_path / "store") as store:
        store.scratch.path("stage").mkdir()
        store.index.digest(str(source))

    assert not list((tmp_path / "store" / "tmp").iterdir())


@contextmanager
def building(root: Path) -> Iterator[None]:
    with Store.open(root) as store:
        store.scratch.path("stage")
        yield


@contextmanager
def using_a_toolchain(root: Path) -> Iterator[None]:
    (root / "toolchains/abc").mkdir(parents=True)
    TreeStore(root / "toolchains", SEAL).use("abc")
    yield
    os.close(_HELD.pop(str(root / "toolchains/abc/used")))


@contextmanager
def fetching(root: Path) -> Iterator[None]:
    with TreeStore(root / "toolchains", SEAL).working("abc"):
        yield


@contextmanager
def collecting(root: Path) -> Iterator[None]:
    with (root / COLLECTING).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize(
    ("doing", "who"),
    [
        (building, f"process {os.getpid()}"),
        (using_a_toolchain, "another process"),
        (fetching, "another process"),
        (collecting, "another process"),
    ],
)
def test_whoever_uses_a_store_is_seen_while_it_does(
    tmp_path: Path, doing: Callable[[Path], AbstractContextManager[None]], who: str
) -> None:
    with doing(tmp_path):
        assert user(tmp_path) == who

    assert user(tmp_path) == ""


def test_work_in_progress_survives_the_sweep_of_another(tmp_path: Path) -> None:
    working, other = Scratch(tmp_path), Scratch(tmp_path)
    stage = working.path("stage")
    stage.mkdir()
    read_only = stage / "read-only"
    read_only.mkdir(mode=0o555)

    assert other.sweep() == 0
    assert stage.exists()

    working.close()
    assert not stage.exists()


def test_leftovers_of_the_dead_are_swept(tmp_path: Path) -> None:
    """Killed between any two steps: with its lock file, without it, or half made."""
    pid = os.fork()
    if pid == 0:
        (Scratch(tmp_path).path("stage")).mkdir()
        os._exit(0)
    os.waitpid(pid, 0)
    (tmp_path / "1.abcd").mkdir()
    half_made = tmp_path / ".2.abcd"
    half_made.mkdir()
    os.utime(half_made, (1, 1))
    being_made = tmp_path / ".3.abcd"
    being_made.mkdir()

    assert Scratch(tmp_path).sweep() == 3
    assert list(tmp_path.iterdir()) == [being_made]


def test_what_is_kept_for_debugging_is_not_swept(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "tmp")
    stage = scratch.path("stage")
    stage.mkdir()

    kept = scratch.keep(stage, tmp_path / "debug")
    scratch.close()
    Scratch(tmp_path / "tmp").sweep()

    assert kept.is_dir()
