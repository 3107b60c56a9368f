"""How builds and collectors share a store: what was used of late is never taken away.

A use is noted in a file's mtime, at most once per ``TOUCH_AFTER``. A collector takes nothing
that is younger than ``GRACE``, and looks again at the moment of taking. The two moments, of
noting the use of something old and of taking it, exclude each other by a file lock. So what a
process has found in the store stays there for ``GRACE - TOUCH_AFTER`` seconds at least.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from kabuild.base.own_files import open_own

TOUCH_AFTER = 600.0
"""Seconds after which a use is noted again; finer would only cost writes."""

GRACE = 1800.0
"""Seconds since its last noted use during which nothing is evicted."""

LOCK = "evict.lock"

COLLECTING = "gc.lock"
"""The lock of a whole collection; its time is that of the last one."""


def note_use(root: str, path: str) -> bool:
    """Note that a file of the store at ``root`` is used now; False where it is gone.

    In a read-only store ages are not needed: nothing is evicted.
    """
    with _reading(root):
        try:
            os.utime(path)
        except FileNotFoundError:
            return False
        except OSError:
            return True
    return True


@contextlib.contextmanager
def evicting(root: str) -> Iterator[None]:
    """Nobody notes a use meanwhile. To be held for moments. Raises ``OSError``."""
    with open(open_own(Path(f"{root}/{LOCK}"))) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _reading(root: str) -> Iterator[None]:
    try:
        lock = open_own(Path(f"{root}/{LOCK}"))
    except OSError:
        yield  # a store that cannot be written
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)
