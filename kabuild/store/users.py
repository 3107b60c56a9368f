"""Who uses a store at this moment, by the locks that they hold in it."""

from __future__ import annotations

import contextlib
import fcntl
from pathlib import Path

from kabuild.store.eviction import COLLECTING
from kabuild.store.paths import LEASES, SCRATCH, TOOLCHAINS

_LOCKS = (
    *(f"{SCRATCH}/*/lock", f"{LEASES}/*.lock"),
    *(f"{TOOLCHAINS}/*.lock", f"{TOOLCHAINS}/*/used", COLLECTING),
)


def user(root: Path) -> str:
    """Somebody who builds, measures, fetches or collects in the store at ``root``.

    For people, such as ``process 123``; empty where there is nobody.
    """
    for pattern in _LOCKS:
        for lock in sorted(root.glob(pattern)):
            if _is_held(lock):
                return _holder(lock)
    return ""


def _is_held(lock: Path) -> bool:
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _holder(lock: Path) -> str:
    """A lease's file has the process in it, a directory for temporary files in its name."""
    with contextlib.suppress(OSError, ValueError):
        is_lease = lock.parent.name == LEASES
        return f"process {int(lock.read_text() if is_lease else lock.parent.name.split('.')[0])}"
    return "another process"
