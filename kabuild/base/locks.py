"""Who holds a file lock."""

from __future__ import annotations

import contextlib
import fcntl
from pathlib import Path

from kabuild.base.reading import open_plain


def is_locked(path: Path, tried: int = fcntl.LOCK_EX) -> bool:
    """Whether somebody holds a lock on ``path`` that excludes the ``tried`` one.

    ``LOCK_EX`` also finds shared locks; with ``LOCK_SH`` two callers do not disturb each other.
    """
    try:
        with open_plain(path) as file:
            fcntl.flock(file, tried | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def process_named(text: str) -> str:
    """A holder's name for people, from the process id in the lock file: ``process 123``."""
    with contextlib.suppress(ValueError):
        return f"process {int(text)}"
    return "another process"
