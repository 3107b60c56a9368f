"""Files that are made must be usable by whoever makes them, whatever the umask."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

OTHERS = 0o077
"""A umask may keep these out, but not the owner."""

_lock = threading.Lock()
_inside: list[int] = []


def spare_owner() -> int:
    """Take the owner's bits out of this process's umask; what it was before."""
    before = os.umask(OTHERS)
    os.umask(before & OTHERS)
    return before


@contextmanager
def sparing_owner() -> Iterator[None]:
    """The same in the body; may be entered by several threads at once, and again.

    The last one to leave gives the process its umask back.
    """
    with _lock:
        _inside.append(_inside[-1] if _inside else spare_owner())
    try:
        yield
    finally:
        with _lock:
            before = _inside.pop()
            if not _inside:
                os.umask(before)
