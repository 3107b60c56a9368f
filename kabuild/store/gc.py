"""Keeping the store below a size: what was used longest ago goes first."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from kabuild.model.digest import Digest
from kabuild.store.faults import writing

GRACE = 600.0
"""Seconds since its last use during which nothing is evicted: another process may need it."""


@dataclass(frozen=True)
class Collected:
    """What a collection did: files and bytes removed, bytes that remain."""

    files: int
    bytes: int
    remaining: int


@dataclass(frozen=True, order=True)
class _Entry:
    used: float
    path: str
    size: int


def collect(
    root: Path,
    limit: int,
    *,
    pinned: Collection[Digest] = (),
    grace: float = GRACE,
    dry_run: bool = False,
) -> Collected:
    """Evict blobs and entries, oldest use first, until ``limit`` bytes remain.

    ``pinned`` blobs stay. A build in another process that loses a blob all the same runs
    what made it again, so this is safe at any time. One collection runs at a time; a second
    waits. Raises StoreError.
    """
    with writing(str(root)):
        root.mkdir(parents=True, exist_ok=True)
        with (root / "gc.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _collect(root, limit, {d.hash for d in pinned}, grace, dry_run=dry_run)


def _collect(root: Path, limit: int, pinned: set[str], grace: float, *, dry_run: bool) -> Collected:
    entries = sorted(_entries(root))
    remaining = sum(entry.size for entry in entries)
    files = freed = 0
    youngest = time.time() - grace
    for entry in entries:
        if remaining <= limit or entry.used > youngest:
            break
        if entry.path.rpartition("/")[2] in pinned or not _unused(entry):
            continue
        if not dry_run:
            with contextlib.suppress(FileNotFoundError):
                Path(entry.path).unlink()
        files += 1
        freed += entry.size
        remaining -= entry.size
    return Collected(files, freed, remaining)


def _unused(entry: _Entry) -> bool:
    """Whether nobody used the entry since it was listed."""
    with contextlib.suppress(OSError):
        return Path(entry.path).stat().st_mtime == entry.used
    return False


def _entries(root: Path) -> Iterator[_Entry]:
    for kind in ("cas", "ac"):
        for shard in _scan(root / kind):
            for item in _scan(Path(shard.path)):
                with contextlib.suppress(FileNotFoundError):
                    status = item.stat(follow_symlinks=False)
                    yield _Entry(status.st_mtime, item.path, status.st_size)


def _scan(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
