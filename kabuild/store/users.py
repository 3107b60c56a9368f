"""The current users of a store, by the locks that they hold in it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from kabuild.base.locks import is_locked, process_named
from kabuild.base.reading import read_plain
from kabuild.store.eviction import COLLECTING
from kabuild.store.paths import LEASES, SCRATCH, TOOLCHAINS

_LOCKS = (
    *(f"{SCRATCH}/*/lock", f"{LEASES}/*.lock"),
    *(f"{TOOLCHAINS}/*.lock", f"{TOOLCHAINS}/*/used", COLLECTING),
)


def user(root: Path) -> str:
    """A process that builds, measures, fetches or collects in the store at ``root``.

    For users, such as ``process 123``; empty if there is none.
    """
    for pattern in _LOCKS:
        for lock in sorted(root.glob(pattern)):
            if is_locked(lock):
                return _holder(lock)
    return ""


def _holder(lock: Path) -> str:
    """The process of a lock: in a lease's content, or in the name of a scratch directory."""
    with contextlib.suppress(OSError, ValueError):
        is_lease = lock.parent.name == LEASES
        return process_named(
            read_plain(lock).decode() if is_lease else lock.parent.name.split(".")[0]
        )
    return process_named("")
