"""The files of a benchmark's checkout: nothing outside of it is read, and nothing endless."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from kabuild.base.fs import is_inside
from kabuild.base.reading import read_plain

MOST_BYTES = 64 << 20
"""Bytes of one original file."""

_MOST_TEXT = 4 << 20


class Checkout:
    """A directory whose content is foreign: its files, by paths relative to it.

    Adapters find and read files through it only. Links are followed inside the checkout.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._real = os.path.realpath(root)

    def read(self, path: str, most: int = MOST_BYTES) -> bytes:
        """The content of a plain file of at most ``most`` bytes. Raises ``OSError``."""
        file = self._root / path
        if not self._holds(path):
            raise OSError(errno.EXDEV, "lies outside of the checkout", path)
        try:
            return read_plain(file, most)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None

    def text(self, path: str) -> str:
        """The same, as text, of which there is less. Raises ``OSError``."""
        try:
            return self.read(path, _MOST_TEXT).decode()
        except UnicodeDecodeError:
            raise OSError(errno.EILSEQ, "is not UTF-8", path) from None

    def has(self, path: str) -> bool:
        """Whether there is anything at a path inside the checkout."""
        return self._holds(path) and os.path.lexists(self._root / path)

    def find(self, pattern: str, below: str = "") -> list[str]:
        """The paths below a directory that match a pattern of ``Path.glob``, sorted."""
        home = self._root / below
        paths = home.glob(pattern) if not below or self._holds(below) else ()
        return [path.relative_to(self._root).as_posix() for path in sorted(paths)]

    def _holds(self, path: str) -> bool:
        real = os.path.realpath(self._root / path) if is_inside(path) else ""
        return f"{real}/".startswith(f"{self._real.rstrip('/')}/")
