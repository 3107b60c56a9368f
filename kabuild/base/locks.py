"""Who holds a file lock, as far as can be known without taking or writing anything for long."""

from __future__ import annotations

import contextlib
import fcntl
from pathlib import Path

from kabuild.base.reading import open_plain


def is_locked(path: Path, tried: int = fcntl.LOCK_EX) -> bool:
    """Whether a lock on ``path`` is held that excludes the one that is ``tried``.

    ``LOCK_EX`` finds those who share it, too; with ``LOCK_SH`` two who look are not in each
    other's way.
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
    """A holder for people, by the process id that it left: ``process 123``."""
    with contextlib.suppress(ValueError):
        return f"process {int(text)}"
    return "another process"
