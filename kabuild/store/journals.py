"""Journals: intermediate findings of actions, which survive an interrupted run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from kabuild.store.faults import writing

MOST_BYTES = 64 << 20
"""The largest journal, in bytes; a larger one starts anew."""

KEPT_SECONDS = 30 * 86400.0
"""Seconds after its last use until a journal is removed."""


class Journals:
    """A file for each action that keeps a journal, named by the action's key.

    A journal holds only what earlier runs of the same action wrote, so its result is one that an
    uninterrupted run might have had. With a result it is no longer needed, and is removed after a
    while.

    A journal is written from within a sandbox until the run is killed, so it has no seal: only the
    user may be able to write ``root``.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextlib.contextmanager
    def lend(self, key: str) -> Iterator[Path | None]:
        """The journal of an action, locked; None if another process uses it.

        Also None if no private directory can be made: then an interrupted run starts anew. Raises
        StoreError.
        """
        path = self._root / key
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            yield None
            return
        with writing(str(self._root)):
            self._sweep()
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            os.utime(fd)
            yield path
            if os.fstat(fd).st_size > MOST_BYTES:
                os.truncate(fd, 0)
        finally:
            os.close(fd)

    def _sweep(self) -> None:
        """Remove journals without recent use."""
        oldest = time.time() - KEPT_SECONDS
        with os.scandir(self._root) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        Path(entry.path).unlink()
