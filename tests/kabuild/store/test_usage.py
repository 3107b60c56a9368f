"""The size of the store, known without looking."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kabuild.store import Store, gc
from kabuild.store.paths import TOOLCHAINS
from kabuild.store.usage import Tally, Usage

from .conftest import Shelf


def test_what_a_process_adds_is_added(tmp_path: Path) -> None:
    for n in range(3):
        with Store.open(tmp_path / "store") as store:
            shelf = Shelf(store)
            shelf.result(str(n), [store.cas.put(bytes([n]) * 1000)])
            store.cas.put(bytes([n]) * 1000)

        assert Usage(store.root).total() == shelf.size() > (n + 1) * 1000


def test_what_is_there_is_not_added_again(tmp_path: Path) -> None:
    for _ in range(2):
        with Store.open(tmp_path / "store") as store:
            store.cas.put(b"x" * 100)
            store.cas.put(b"x" * 100)

    assert Usage(tmp_path / "store").total() == 100


def test_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    Usage(tmp_path).set(0)
    pids = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            for _ in range(50):
                Usage(tmp_path).add(1)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)

    assert Usage(tmp_path).total() == 200


def test_threads_at_once_lose_nothing() -> None:
    tally = Tally()
    with ThreadPoolExecutor(4) as pool:
        [*pool.map(tally, [1] * 1000)]

    assert tally.take() == 1000
    assert tally.bytes == 0


def test_a_store_that_nobody_has_counted(tmp_path: Path) -> None:
    """From before there was a count, or with a damaged one: the next collection counts."""
    with Store.open(tmp_path / "store") as store:
        store.cas.put(b"x" * 100)
    for damage in ("", "what?", "-5"):
        (tmp_path / "store" / "usage").write_text(damage)
        assert Usage(store.root).total() is None
        Usage(store.root).add(5)
        assert Usage(store.root).total() is None

    gc.collect(store.root, 1 << 30)

    assert Usage(store.root).total() == 100


def test_toolchains_count(tmp_path: Path) -> None:
    Usage(tmp_path).set(7)
    home = tmp_path / TOOLCHAINS / ("a" * 64)
    home.mkdir(parents=True)
    (home / "used").write_text("1000")
    (tmp_path / TOOLCHAINS / f"{'b' * 64}.lock").touch()
    uncounted = tmp_path / TOOLCHAINS / ("c" * 64)
    uncounted.mkdir()
    (uncounted / "file").write_bytes(b"x" * 50)

    assert Usage(tmp_path).total() == 1057
