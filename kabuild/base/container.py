"""Containers: a tar in one zstd frame, from an untrusted source.

``.kab`` and ``.kcache`` files are such containers. A reader asks for one member after another and
gets its bytes in pieces, so memory does not grow with the unpacked size. The limits are far above
what honest files need:

- the frame's window is at most ``WINDOW``, and it unpacks to at most ``ROOM`` bytes and
  ``RATIO`` times the size of the file;
- a head member, which is read whole, has at most ``HEAD_ROOM`` bytes and ``HEAD_RATIO`` times the
  size of the file: most of a manifest is digests, which nothing compresses;
- JSON in it is not all brackets and commas, see ``bounded_json``.

The file must end exactly where its last member ends.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import zstandard

from kabuild.base.reading import open_plain

WINDOW = 32 << 20
ROOM = 64 << 20
RATIO = 200
HEAD_ROOM = 1 << 20
HEAD_RATIO = 8

_PIECE = 4096
"""Compressed bytes at a time: 4 of them unpack to at most 128 KiB."""
_CHUNK = 1 << 20


class DamagedError(ValueError):
    """A container that is incomplete, or holds what it should not."""


class Packer:
    """Writes a container. Equal members give equal bytes."""

    def __init__(self, file: BinaryIO, level: int) -> None:
        self._file = file
        self._compressor = zstandard.ZstdCompressor(level=level, write_checksum=True).compressobj()
        self._made = 0
        self._size = 0

    def add(self, name: str, data: bytes) -> None:
        """Write one member; times, owners and modes are constant. Raises ``OSError``."""
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), 0o644
        self._pack(entry.tobuf(tarfile.USTAR_FORMAT))
        self._pack(data)
        self._pack(bytes(-len(data) % tarfile.BLOCKSIZE))

    def finish(self) -> int:
        """Write the end; returns the size in bytes. Raises ``OSError``."""
        self._pack(bytes(2 * tarfile.BLOCKSIZE))
        self._pack(bytes(-self._made % tarfile.RECORDSIZE))
        self._write(self._compressor.flush())
        return self._size

    def _pack(self, data: bytes) -> None:
        self._made += len(data)
        self._write(self._compressor.compress(data))

    def _write(self, packed: bytes) -> None:
        self._file.write(packed)
        self._size += len(packed)


class Container:
    """The members of an open container, in their order. Raises DamagedError throughout."""

    def __init__(self, file: BinaryIO, size: int, name: str = "") -> None:
        """``size`` is that of the whole file, in bytes; ``name`` is for errors of reading it."""
        self._file = file
        self._name = name
        self._size = size
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
        self._unpacked = io.BytesIO()
        self._position = 0
        self._made = 0

    def next(self) -> tuple[str, int] | None:
        """Name and size of the next member, or None at the end.

        Only plain files: links, devices and the extended headers that name them are refused.
        """
        header = self._read(tarfile.BLOCKSIZE)
        if not any(header):
            self._finish()
            return None
        try:
            member = tarfile.TarInfo.frombuf(header, "ascii", "backslashreplace")
        except tarfile.TarError as error:
            raise DamagedError(f"it has no readable header: {error}") from None
        if member.type != tarfile.REGTYPE or member.size < 0:
            raise DamagedError(f"{member.name[:80]!r} is not a regular file")
        return member.name, member.size

    def chunks(self, size: int) -> Iterator[bytes]:
        """The content of the member that ``next`` named, all of it, in pieces of a MiB."""
        left = size
        while left:
            chunk = self._read(min(left, _CHUNK))
            left -= len(chunk)
            yield chunk
        if any(self._read(-size % tarfile.BLOCKSIZE)):
            raise DamagedError("there is data between its members")

    def content(self, size: int) -> bytes:
        """The content of the member that ``next`` named, at once."""
        return b"".join(self.chunks(size))

    def head(self, name: str) -> bytes:
        """The content of the next member, which must be ``name`` and within the head's limits."""
        found = self.next()
        if found is None or found[0] != name:
            raise DamagedError(f"it has no {name} where it is expected")
        if found[1] > HEAD_ROOM + HEAD_RATIO * self._size:
            raise DamagedError(f"its {name} has {found[1]:,} bytes, too many for such a file")
        return self.content(found[1])

    def _finish(self) -> None:
        """Check the end: a second empty block, padding, and nothing more."""
        padding = -(self._position + tarfile.BLOCKSIZE) % tarfile.RECORDSIZE
        if any(self._read(tarfile.BLOCKSIZE + padding)):
            raise DamagedError("there is data after its end")
        if self._unpacked.read(1) or self._fill():
            raise DamagedError("there is data after its end")
        if not self._decompressor.eof:
            raise DamagedError("it ends early")
        if self._decompressor.unused_data or self._next_piece(1):
            raise DamagedError("there is data after its end")

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._unpacked.read(size - len(parts))
            if not part and not self._fill():
                raise DamagedError("it ends early")
            parts += part
        self._position += size
        return bytes(parts)

    def _fill(self) -> bool:
        """Unpack a little more; False at the end of the frame, or of the file."""
        while not self._decompressor.eof and (piece := self._next_piece(_PIECE)):
            try:
                made = self._decompressor.decompress(piece)
            except zstandard.ZstdError as error:
                raise DamagedError(f"its compressed data is damaged ({error})") from None
            self._made += len(made)
            if self._made > ROOM + RATIO * self._size:
                raise DamagedError(
                    f"it unpacks to more than {RATIO} times its size: no honest file does"
                )
            if made:
                self._unpacked = io.BytesIO(made)
                return True
        return False

    def _next_piece(self, size: int) -> bytes:
        """Up to ``size`` packed bytes. An error of the file has its name."""
        try:
            return self._file.read(size)
        except OSError as error:
            error.filename = self._name or None
            raise


@contextmanager
def opened(path: Path) -> Iterator[Container]:
    """The container at ``path``. Raises ``OSError``, also for devices and pipes.

    Its limits follow from what it really holds: a file may claim any size by a hole at its end.
    """
    with _whole(path) as (file, size):
        yield Container(file, size, str(path))


def pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a container as they lie there. Raises DamagedError and ``OSError``."""
    with _whole(path) as (file, size):
        left = size
        while left and (piece := file.read(min(left, _CHUNK))):
            left -= len(piece)
            yield piece


@contextmanager
def _whole(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """A plain file without holes, and its size in bytes."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size and (held := os.lseek(file.fileno(), 0, os.SEEK_HOLE)) < size:
            raise DamagedError(f"{size - held:,} of its bytes are a hole")
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        yield file, size
