"""``ar`` archives, which Debian packages are: the common format without long names."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from kabuild.toolchain.unpack.entry import bad_archive

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

_MAGIC = b"!<arch>\n"
_HEADER = 60
_END = b"`\n"


class _Part(io.RawIOBase):
    """``size`` bytes of a file from ``start``, as a readable file."""

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file = file
        self._at = start
        self._end = start + size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer)
        self._file.seek(self._at)
        data = self._file.read(min(len(view), self._end - self._at))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


def members(file: IO[bytes], name: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each member. ``name`` is the archive's, for messages.

    Raises DriftError(BAD_ARCHIVE).
    """
    if file.read(len(_MAGIC)) != _MAGIC:
        raise bad_archive(name, "is not an ar archive")
    at = len(_MAGIC)
    while header := file.read(_HEADER):
        if len(header) < _HEADER or header[58:] != _END or not header[48:58].strip().isdigit():
            raise bad_archive(name, f"is damaged: no header at byte {at}")
        size = int(header[48:58])
        at += _HEADER
        yield (
            header[:16].decode("latin-1").strip().rstrip("/"),
            io.BufferedReader(_Part(file, at, size)),
        )
        at += size + size % 2
        file.seek(at)
