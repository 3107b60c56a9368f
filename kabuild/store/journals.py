"""Journals: what an action has found out so far, kept where an interrupted run does not lose it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from kabuild.store.faults import writing

MOST_BYTES = 64 << 20
"""Of one journal; one that grew beyond that starts anew."""

KEPT_SECONDS = 30 * 86400.0
"""After its last use."""


class Journals:
    """A file for each action that keeps a journal, named by the action's key.

    Whatever an earlier run of the very same action left is all that a journal ever holds, so a
    result that rests on it is one that an uninterrupted run might have had. Nothing of it is
    needed once there is a result; it goes when it was not used for a while.

    A journal is written from within a sandbox until the run is killed, so it has no seal: ``root``
    has to be a directory that only its user can write.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextlib.contextmanager
    def lend(self, key: str) -> Iterator[Path | None]:
        """The journal of an action, locked; None if another process has it.

        None, too, where no private directory can be made: an interrupted run begins anew then.
        Raises StoreError.
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
