"""The resources of actions: CPU slots of this build, and devices shared by all processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from pathlib import Path
from typing import Protocol

from kabuild.base.locks import is_locked, process_named
from kabuild.base.own_files import open_own
from kabuild.base.reading import read_plain
from kabuild.model.action import Resources
from kabuild.store.faults import writing


class Leases(Protocol):
    """Exclusive use of devices by name, across processes. Used by one thread."""

    def acquire(self, name: str) -> bool:
        """Lease the device now, or return False if another process has it."""
        ...

    def release(self, name: str) -> None:
        """Release it."""
        ...

    def holder(self, name: str) -> str:
        """Who has it, for people, such as ``process 123``."""
        ...


class FileLeases:
    """Leases as locked files in one directory; the kernel releases those of a dead process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, int] = {}

    def acquire(self, name: str) -> bool:
        """Lease the device now, or return False. Raises StoreError."""
        with writing(str(self._directory)):
            self._directory.mkdir(parents=True, exist_ok=True)
            file = open_own(self._path(name), 0o666)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(file, 0)
                os.pwrite(file, str(os.getpid()).encode(), 0)
            except BlockingIOError:
                os.close(file)
                return False
            except BaseException:
                os.close(file)
                raise
        self._held[name] = file
        return True

    def release(self, name: str) -> None:
        """Release it, even if a forked child still has the file open."""
        file = self._held.pop(name)
        fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)

    def is_held(self, name: str) -> bool:
        """Whether anybody has it, as far as known; locks and writes nothing."""
        return is_locked(self._path(name), fcntl.LOCK_SH)

    def holder(self, name: str) -> str:
        """Who has it."""
        with contextlib.suppress(OSError, ValueError):
            return process_named(read_plain(self._path(name)).decode())
        return process_named("")

    def _path(self, name: str) -> Path:
        return self._directory / f"{re.sub('[^A-Za-z0-9_.-]', '_', name)}.lock"


class Slots:
    """CPU slots of one build, numbered from ``first``."""

    def __init__(self, total: int, first: int = 0) -> None:
        if total < 1:
            msg = f"a build needs at least one CPU slot, not {total}"
            raise ValueError(msg)
        self._total = total
        self._free = set(range(first, first + total))

    def take(self, resources: Resources) -> tuple[int, ...] | None:
        """The slots for one action, or None while there are too few."""
        needed = min(resources.cpus, self._total) or self._total
        if needed > len(self._free):
            return None
        taken = tuple(sorted(self._free)[:needed])
        self._free.difference_update(taken)
        return taken

    def give_back(self, taken: tuple[int, ...]) -> None:
        """Free the slots of an action that ended."""
        self._free.update(taken)
