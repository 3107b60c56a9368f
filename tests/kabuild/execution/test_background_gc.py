"""The collection that nobody asks for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kabuild.execution import background_gc
from kabuild.execution.background_gc import WORTH, collect_if_due
from kabuild.sandbox import detached
from kabuild.store import DiskCas, Store
from kabuild.store.usage import Usage

OLD = 1_600_000_000
DATA = os.urandom(WORTH)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What would have been started."""
    calls: list[object] = []
    monkeypatch.setattr(background_gc, "start_detached", lambda argv, **_: calls.append(argv))
    return calls


@pytest.fixture
def quiet() -> Callable[[str], None]:
    def fail(text: str) -> None:
        pytest.fail(text)

    return fail


Warn = Callable[[str], None]


def test_a_build_within_the_limit_starts_nothing(
    store: Store, started: list[object], quiet: Warn
) -> None:
    store.cas.put(DATA)

    collect_if_due(store, 2 * WORTH, store.root, quiet)

    assert not started
    assert Usage(store.root).total() == WORTH


def test_a_build_that_added_nothing_does_not_even_look(
    store: Store, started: list[object], quiet: Warn
) -> None:
    Usage(store.root).set(1 << 50)
    store.cas.put(b"little")

    collect_if_due(store, 1, store.root, quiet)

    assert not started


def test_a_store_that_nobody_counted_is_counted(
    store: Store, started: list[object], quiet: Warn
) -> None:
    (store.root / "usage").unlink()
    store.cas.put(DATA)

    collect_if_due(store, 1 << 50, store.root, quiet)

    assert len(started) == 1


def test_not_again_at_once(store: Store, started: list[object], quiet: Warn) -> None:
    (store.root / "gc.lock").touch()
    store.cas.put(DATA)

    collect_if_due(store, 1, store.root, quiet)
    assert not started

    os.utime(store.root / "gc.lock", (OLD, OLD))
    store.cas.put(DATA[1:] + b"xy")
    collect_if_due(store, 1, store.root, quiet)
    assert len(started) == 1


def test_a_bad_limit_spoils_no_build(
    store: Store, started: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KABUILD_CACHE_SIZE", "lots")
    store.cas.put(DATA)
    warnings: list[str] = []

    collect_if_due(store, None, store.root, warnings.append)

    assert not started
    assert "KABUILD_CACHE_SIZE: 'lots' is not a valid size" in warnings[0]


def test_for_real(
    store: Store, monkeypatch: pytest.MonkeyPatch, quiet: Warn, tmp_path: Path
) -> None:
    """A process of its own removes what is old and keeps what is new."""
    monkeypatch.setenv("KABUILD_CACHE_SIZE", "1M")
    old, new = store.cas.put(DATA), store.cas.put(DATA[::-1])
    assert isinstance(store.cas, DiskCas)
    os.utime(store.cas.path_of(old), (OLD, OLD))
    began = time.time()

    collect_if_due(store, None, tmp_path, quiet)
    assert detached._STARTED[-1].wait(120) == 0

    assert not Path(store.cas.path_of(old)).exists()
    assert store.cas.get(new) == DATA[::-1]
    assert Usage(store.root).total() == WORTH
    assert (store.root / "gc.lock").stat().st_mtime >= began - 1
