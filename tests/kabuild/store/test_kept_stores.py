"""The stores that test runs keep: few versions, and none is removed while somebody uses it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.testkit import kept


def _use(monkeypatch: pytest.MonkeyPatch, version: int) -> Path:
    monkeypatch.setattr(kept, "_version", lambda: f"v{version}")
    directory = kept.kept.__wrapped__("judged")
    os.utime(directory, (version, version))
    return Path(directory)


def test_the_oldest_version_is_removed_unless_it_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "ROOT", tmp_path)
    held: list[int] = []
    monkeypatch.setattr(kept, "_hold", held.append)
    first, *others = (_use(monkeypatch, version) for version in range(1, 5))

    assert all(path.is_dir() for path in (first, *others))

    os.close(held.pop(0))  # as when the first one's process ends
    last = _use(monkeypatch, 5)

    assert not first.exists()
    assert all(path.is_dir() for path in (*others, last))


def test_a_store_is_for_one_process_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "kept", lambda name: tmp_path)

    with (
        kept.kept_alone("judged") as directory,
        (directory / "lock").open() as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (tmp_path / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
