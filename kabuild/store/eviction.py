"""How builds and collectors share a store: what was used recently is never evicted.

A use is noted in a file's mtime, at most once per ``TOUCH_AFTER``. A collector evicts nothing that
was used within ``GRACE``, and checks again just before evicting. A file lock keeps noting the use
of something old and evicting it apart. So a file that a process has found in the store stays there
for at least ``GRACE - TOUCH_AFTER`` seconds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from kabuild.base.own_files import open_own

TOUCH_AFTER = 600.0
"""Seconds after which a use is noted again; less would only cost writes."""

GRACE = 1800.0
"""Seconds since its last noted use during which nothing is evicted."""

LOCK = "evict.lock"

COLLECTING = "gc.lock"
"""The lock of a collection; its mtime is the end of the last one."""


def note_use(root: str, path: str) -> bool:
    """Note that a file of the store at ``root`` is used now; False if it is missing.

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
    """Excludes notes of uses. To be held briefly. Raises ``OSError``."""
    with open(open_own(Path(f"{root}/{LOCK}"))) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _reading(root: str) -> Iterator[None]:
    try:
        lock = open_own(Path(f"{root}/{LOCK}"))
    except OSError:
        yield  # a read-only store
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)
