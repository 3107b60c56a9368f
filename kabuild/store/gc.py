"""Keeping the store below a size: what was used longest ago goes first."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.fs import remove_tree
from kabuild.model.digest import Digest
from kabuild.store.faults import writing
from kabuild.store.paths import TOOLCHAINS

GRACE = 600.0
"""Seconds since its last use during which nothing is evicted: another process may need it."""


@dataclass(frozen=True)
class Collected:
    """What a collection did: files and bytes removed, bytes that remain.

    A toolchain counts as one file.
    """

    files: int
    bytes: int
    remaining: int


@dataclass(frozen=True, order=True)
class _Entry:
    used: float
    path: str
    size: int
    is_toolchain: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def collect(
    root: Path,
    limit: int,
    *,
    pinned: Collection[Digest] = (),
    toolchains: Collection[str] = (),
    grace: float = GRACE,
    dry_run: bool = False,
) -> Collected:
    """Evict blobs, entries and toolchains, oldest use first, until ``limit`` bytes remain.

    ``pinned`` blobs stay, and the ``toolchains`` of these digests. A build in another process
    that loses something all the same makes or fetches it again, so this is safe at any time.
    One collection runs at a time; a second waits. Raises StoreError.
    """
    with writing(str(root)):
        root.mkdir(parents=True, exist_ok=True)
        with (root / "gc.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kept = {*(d.hash for d in pinned), *toolchains}
            return _collect(root, limit, kept, grace, dry_run=dry_run)


def _collect(root: Path, limit: int, kept: set[str], grace: float, *, dry_run: bool) -> Collected:
    entries = sorted([*_entries(root), *_toolchains(root / TOOLCHAINS)])
    remaining = sum(entry.size for entry in entries)
    files = freed = 0
    youngest = time.time() - grace
    for entry in entries:
        if remaining <= limit or entry.used > youngest:
            break
        if entry.name.partition(".")[0] in kept:
            continue
        evict = _evict_toolchain if entry.is_toolchain else _evict_file
        if not evict(entry, dry_run=dry_run):
            continue
        files += 1
        freed += entry.size
        remaining -= entry.size
    return Collected(files, freed, remaining)


def _evict_file(entry: _Entry, *, dry_run: bool) -> bool:
    """Remove a blob or a result; whether it could go."""
    if not _unused(entry):
        return False
    if not dry_run:
        with contextlib.suppress(FileNotFoundError):
            Path(entry.path).unlink()
    return True


def _evict_toolchain(entry: _Entry, *, dry_run: bool) -> bool:
    """Remove a toolchain on which nobody works now: out of sight first, then from the disk."""
    path = Path(entry.path)
    with path.with_name(f"{entry.name.partition('.')[0]}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if not dry_run:
            gone = path.with_name(f"{entry.name}.removed")
            remove_tree(gone)
            path.rename(gone)
            remove_tree(gone)
    return True


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


def _toolchains(root: Path) -> Iterator[_Entry]:
    """Unpacked toolchains, and what interrupted fetches and removals left of others."""
    for item in _scan(root):
        name, _, suffix = item.name.partition(".")
        if len(name) != 64 or suffix == "lock":
            continue
        used = Path(item.path, "used") if not suffix else Path(item.path)
        with contextlib.suppress(FileNotFoundError):
            yield _Entry(used.stat().st_mtime, item.path, _tree_size(item.path), is_toolchain=True)


def _tree_size(root: str) -> int:
    """Bytes of all files below a directory."""
    total = 0
    for directory, _, names in os.walk(root):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(f"{directory}/{name}").st_size
    return total


def _scan(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
