"""Garbage collection: keeps the store below a size, evicting the least recently used first.

Results are evicted whole: the entry of the action cache first, then the blobs that no other result
needs. So a kept result keeps all its blobs.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import os
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.fs import remove_tree
from kabuild.base.own_files import open_own
from kabuild.base.reading import read_plain
from kabuild.store.build_memo import MemoTable
from kabuild.store.contents import USED, Contents, Item, scan
from kabuild.store.eviction import COLLECTING, GRACE, evicting
from kabuild.store.faults import writing
from kabuild.store.paths import MEMORIES
from kabuild.store.result_closure import Promise, QuietBlobs, read_promise
from kabuild.store.sealed_entry import MOST_BYTES
from kabuild.store.usage import Usage

_BATCH = 100
"""Items per hold of the lock that builds wait for: a few milliseconds."""


@dataclass(frozen=True)
class Collected:
    """The result of a collection: what it removed, and the bytes that remain.

    ``is_complete`` is false if it ran out of time.
    """

    results: int = 0
    blobs: int = 0
    toolchains: int = 0
    bytes: int = 0
    remaining: int = 0
    is_complete: bool = True


def collect(
    root: Path,
    limit: int,
    *,
    keep: Collection[str] = (),
    grace: float = GRACE,
    dry_run: bool = False,
    seconds: float | None = None,
) -> Collected | None:
    """Evict results, blobs and toolchains, oldest use first, until ``limit`` bytes remain.

    The hashes in ``keep`` stay, and so does everything used within ``grace`` seconds. Builds may
    run meanwhile: what they found stays. Remembered answers from evicted results are forgotten.
    With ``seconds`` it stops after that time, and returns None if another collection is running.
    Raises StoreError.
    """
    with writing(str(root)):
        root.mkdir(parents=True, exist_ok=True)
        with open(open_own(root / COLLECTING)) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if seconds is not None else 0))
            except BlockingIOError:
                return None
            os.utime(lock.fileno())
            ends = time.monotonic() + seconds if seconds is not None else float("inf")
            collection = _Collection(root, frozenset(keep), dry_run=dry_run)
            return collection.run(limit, time.time() - grace, lambda: time.monotonic() > ends)


class _Collection:
    """One collection: what may be evicted next, and what was."""

    def __init__(self, root: Path, keep: frozenset[str], *, dry_run: bool) -> None:
        self._root = root
        self._keep = keep
        self._dry_run = dry_run
        self._memories = MemoTable(root / MEMORIES)
        self._contents = scan(root)
        self._promises = _read_promises(root, self._contents)
        self._needed = Counter(name for needs in self._promises.values() for name in needs)
        self._gone: Counter[str] = Counter()
        self._freed = 0
        self._queue = self._first()

    def run(self, limit: int, youngest: float, is_late: Callable[[], bool]) -> Collected:
        """Evict until ``limit`` bytes remain, or nothing is left from before ``youngest``."""
        size = self._contents.size
        done = late = False
        while not done and not late:
            with contextlib.nullcontext() if self._dry_run else evicting(str(self._root)):
                for _ in range(_BATCH):
                    done = (
                        size - self._freed <= limit
                        or not self._queue
                        or self._queue[0][0].used > youngest
                    )
                    if done:
                        break
                    self._evict(*heapq.heappop(self._queue))
            late = is_late()
        remaining = size - self._freed
        if not self._dry_run:
            self._settle()
        counts = {kind: self._gone[kind] for kind in ("results", "blobs", "toolchains")}
        return Collected(**counts, bytes=self._freed, remaining=remaining, is_complete=done)

    def _first(self) -> list[tuple[Item, str]]:
        """What may be evicted at once: everything but blobs of results."""
        contents, uses = self._contents, self._memories.uses()
        queue = [
            (_used_at(item, uses.get(name, 0.0)), "results")
            for name, item in contents.results.items()
        ]
        queue += [(b, "blobs") for name, b in contents.blobs.items() if not self._needed[name]]
        queue += [(item, "toolchains") for item in contents.toolchains.values()]
        queue += [(item, "leftovers") for item in contents.leftovers]
        heapq.heapify(queue)
        return queue

    def _evict(self, item: Item, kind: str) -> None:
        if item.name.partition(".")[0] in self._keep:
            return
        if kind == "results" and not self._gone["results"] and not self._dry_run:
            self._memories.forget()
        evict = _evict_file if kind in {"results", "blobs"} else _evict_toolchain
        if not evict(item, dry_run=self._dry_run):
            return
        self._gone[kind] += 1
        self._freed += item.size
        if kind == "results":
            self._release(self._promises.get(item.name, frozenset()))

    def _release(self, needs: Collection[str]) -> None:
        """After evicting a result, add its blobs that no other result needs."""
        for name in needs:
            self._needed[name] -= 1
            if not self._needed[name] and name in self._contents.blobs:
                heapq.heappush(self._queue, (self._contents.blobs[name], "blobs"))

    def _settle(self) -> None:
        """Record what remains; forget memories of evicted results that a build made meanwhile."""
        if self._gone["results"]:
            self._memories.forget()
        contents = self._contents
        counted = sum(i.size for i in (*contents.results.values(), *contents.blobs.values()))
        Usage(self._root).set(max(counted - self._freed, 0))


def _used_at(item: Item, remembered: float) -> Item:
    """A result with its last use, including remembered answers, which read no results."""
    if remembered <= item.used:
        return item
    return Item(remembered, item.name, item.size, item.path)


def _read_promises(root: Path, contents: Contents) -> dict[str, frozenset[str]]:
    """The blobs of each result; none for a lost result."""
    get = QuietBlobs(root)
    promises: dict[str, frozenset[str]] = {}
    for name, item in contents.results.items():
        try:
            promise = read_promise(name, read_plain(Path(item.path), MOST_BYTES), get)
        except (OSError, ValueError, LookupError):
            promise = Promise(frozenset(), frozenset())
        promises[name] = frozenset(d.hash for d in promise.outputs | promise.origin)
    return promises


def _evict_file(item: Item, *, dry_run: bool) -> bool:
    """Remove a blob or a result; returns whether it was removed."""
    if not _unused(item):
        return False
    if not dry_run:
        with contextlib.suppress(FileNotFoundError):
            Path(item.path).unlink()
    return True


def _evict_toolchain(item: Item, *, dry_run: bool) -> bool:
    """Remove a toolchain that is neither being fetched nor in use: rename it, then delete it."""
    path = Path(item.path)
    with contextlib.ExitStack() as stack:
        for lock in (path.with_name(f"{item.name.partition('.')[0]}.lock"), path / USED):
            try:
                file = stack.enter_context(lock.open("a"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except FileNotFoundError:
                continue
            except BlockingIOError:
                return False
        if not dry_run:
            gone = path.with_name(f"{item.name}.removed")
            remove_tree(gone)
            path.rename(gone)
            remove_tree(gone)
    return True


def _unused(item: Item) -> bool:
    """Whether the file was not used since it was listed, also not by a remembered answer."""
    with contextlib.suppress(OSError):
        return os.stat(item.path).st_mtime <= item.used  # noqa: PTH116 - one per item
    return False
