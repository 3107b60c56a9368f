"""Temporary files, which are removed soon after the end of their process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import threading
import time
from pathlib import Path

from kabuild.base.own_files import open_own
from kabuild.store.faults import writing


class Scratch:
    """A directory of this process below ``<store>/tmp``, made on first use.

    Each process holds a file lock in its own directory, so that others can tell leftovers from work
    in progress, also across containers and reboots, where process ids mean nothing.
    """

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._guard = threading.Lock()
        self._home: Path | None = None
        self._lock = -1
        self._count = 0

    def path(self, stem: str) -> Path:
        """A fresh path without a file, on the store's file system."""
        return Path(self.name(stem))

    def name(self, stem: str) -> str:
        """The same as a text. For thousands of small files."""
        with self._guard:
            if self._home is None:
                self._home = self._make_home()
            self._count += 1
            return f"{self._home}/{stem}.{self._count}"

    def renew(self) -> None:
        """Make a new directory on next use, if somebody has removed this process's."""
        with self._guard:
            if self._home is not None and not self._home.is_dir():
                os.close(self._lock)
                self._home = None

    def sweep(self) -> int:
        """Remove the directories of dead processes; returns how many."""
        removed = 0
        with contextlib.suppress(FileNotFoundError), os.scandir(self._parent) as entries:
            for entry in entries:
                young = entry.name.startswith(".") and not _is_old(entry)
                if not young and entry.is_dir(follow_symlinks=False):
                    removed += _remove_if_dead(entry.path)
        return removed

    def close(self) -> None:
        """Remove this process's directory."""
        with self._guard:
            home, self._home = self._home, None
            if home is not None:
                shutil.rmtree(home, ignore_errors=True)
                os.close(self._lock)

    def keep(self, path: Path, parent: Path) -> Path:
        """Move ``path`` where no sweep finds it, for inspection by the user."""
        with writing(str(self._parent)):
            parent.mkdir(parents=True, exist_ok=True)
            kept = parent / f"{path.name}.{secrets.token_hex(3)}"
            path.rename(kept)
        return kept

    def _make_home(self) -> Path:
        with writing(str(self._parent)):
            self._parent.mkdir(parents=True, exist_ok=True)
            name = f"{os.getpid()}.{secrets.token_hex(4)}"
            # Locked under a hidden name, then renamed: no sweep ever sees it unlocked.
            hidden, home = self._parent / f".{name}", self._parent / name
            hidden.mkdir()
            self._lock = os.open(hidden / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            hidden.rename(home)
        return home


def _is_old(entry: os.DirEntry[str]) -> bool:
    """Whether an unfinished directory is certainly abandoned, after an hour."""
    with contextlib.suppress(OSError):
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > 3600
    return False


def _remove_if_dead(path: str) -> bool:
    try:
        lock = open_own(Path(path) / "lock", 0o600)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        shutil.rmtree(path, ignore_errors=True)
        return True
    finally:
        os.close(lock)
