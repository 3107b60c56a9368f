"""Builds and collections at once, in processes of their own."""

from __future__ import annotations

import fcntl
import os
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import Store, action_cache, cas, gc
from kabuild.store.contents import Item

OLD = 1_600_000_000
ROUNDS = 200
KEYS = [Digest.of(str(n).encode()) for n in range(12)]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every use is noted."""
    monkeypatch.setattr(cas, "TOUCH_AFTER", 0.0)
    monkeypatch.setattr(action_cache, "TOUCH_AFTER", 0.0)


def in_process(work: Callable[[], None]) -> int:
    """Run ``work`` in a process of its own; its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except BaseException:  # noqa: BLE001 - a child of a test ends here
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


@contextmanager
def holding(lock: Path, how: int) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, how)
        yield


def build(root: Path, seed: int) -> None:
    """Find results, or make them; what was found is used at once. Some grow old, used by none."""
    choose = random.Random(seed)
    store = Store.open(root)
    using = root / "using"
    for _ in range(ROUNDS):
        number = choose.randrange(len(KEYS))
        with holding(using, fcntl.LOCK_SH):
            use(store, number)
        if choose.random() < 0.5:
            with holding(using, fcntl.LOCK_EX):
                grow_old(root)


def use(store: Store, number: int) -> None:
    """Neighbours share a blob, and the same blobs are made again and again."""
    parts = [f"blob {(number + n) % len(KEYS)}".encode() * 20 for n in range(2)]
    result = store.actions.get(KEYS[number])
    if result is None:
        with (store.root / "made").open("a") as made:
            made.write("x")
        files = tuple(OutputFile(str(n), store.cas.put(part)) for n, part in enumerate(parts))
        store.actions.put(KEYS[number], ActionResult(0, files))
        result = store.actions.get(KEYS[number])
        assert result is not None, "what was just stored is there"
    for file, part in zip(result.files, parts, strict=True):
        assert store.cas.get(file.digest) == part


def grow_old(root: Path) -> None:
    for kind in ("ac", "cas"):
        for path in (root / kind).rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_file():
                    os.utime(path, (OLD, OLD))


REAL = gc._unused


def dawdling(item: Item) -> bool:
    """Look whether something is unused, and give others time to use it before it goes."""
    answer = REAL(item)
    for _ in range(50):
        os.sched_yield()
    return answer


@pytest.mark.usefixtures("eager")
def test_what_a_build_found_stays_while_it_uses_it(tmp_path: Path) -> None:
    root = tmp_path / "store"
    Store.open(root).close()

    def collect() -> None:
        gc._unused = dawdling
        while not (tmp_path / "stop").exists():
            gc.collect(root, 0, grace=30.0)

    collector = in_process(collect)
    builders = [in_process(partial(build, root, seed)) for seed in range(2)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in builders]
    (tmp_path / "stop").touch()
    codes.append(os.waitstatus_to_exitcode(os.waitpid(collector, 0)[1]))

    assert codes == [0, 0, 0]
    assert (root / "made").stat().st_size > 2 * len(KEYS), "the collector took some"
