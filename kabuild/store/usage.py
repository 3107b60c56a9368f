"""The size of the store as a running sum, without a scan.

The sum covers results and blobs; every collection corrects it. Until then it is too small if a
process was killed before it added its bytes, which costs only disk space.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from kabuild.base.own_files import open_own
from kabuild.base.reading import read_plain
from kabuild.store.contents import toolchain_size
from kabuild.store.paths import TOOLCHAINS

FILE = "usage"


class Tally:
    """Bytes that this process added; counted from many threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._bytes = 0

    def __call__(self, size: int) -> None:
        """Count ``size`` bytes more."""
        with self._guard:
            self._bytes += size

    @property
    def bytes(self) -> int:
        """The bytes that were counted and not yet taken."""
        return self._bytes

    def take(self) -> int:
        """The counted bytes; counting starts anew."""
        with self._guard:
            taken, self._bytes = self._bytes, 0
        return taken


class Usage:
    """The sum in the store at ``root``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / FILE

    def add(self, size: int) -> None:
        """Add the bytes that a process stored, if the sum is known. Raises ``OSError``."""
        if size and self._path.exists():
            with self._locked() as file:
                known = _number(os.pread(file, 64, 0))
                if known is not None:
                    _write(file, known + size)

    def set(self, size: int) -> None:
        """Set the sum. Raises ``OSError``."""
        with self._locked() as file:
            _write(file, size)

    def total(self) -> int | None:
        """Bytes of results, blobs and toolchains; None before the first count."""
        try:
            known = _number(read_plain(self._path))
        except OSError:
            return None
        if known is None:
            return None
        homes = (path for path in _children(self._root / TOOLCHAINS) if "." not in path.name)
        return known + sum(toolchain_size(str(home)) for home in homes if home.is_dir())

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        file = open_own(self._path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _number(text: bytes) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _write(file: int, size: int) -> None:
    """Write the sum in place with a fixed length, so that readers never see half of it."""
    text = f"{size:20d}\n".encode()
    os.pwrite(file, text, 0)
    os.ftruncate(file, len(text))


def _children(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []
