"""Bounded reads of files; endless, silent and over-large ones are refused.

Every file that is read as a whole is read here: of a user, of a store that others can write, and
below ``out/``. A sparse file costs nothing to make, and would take all memory.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 256 << 20
"""The largest file that is read as a whole unless a smaller limit is given."""

PIPE_SECONDS = 10.0
"""Seconds for a pipe to give all its content."""

NO_FILE = frozenset({errno.EFBIG, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENXIO})
"""What ``read_plain`` raises for anything but a plain file of a sensible size."""

_CHUNK = 1 << 16
_PLAIN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def open_plain(path: Path) -> BufferedReader:
    """Open a plain file to read. Raises ``OSError``, also for devices and pipes."""
    fd = os.open(path, _PLAIN)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _refused(path)
    return open(fd, "rb")


def read_plain(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a plain file, of at most ``most`` bytes. Raises ``OSError``."""
    with open_plain(path) as file:
        return read_open(file, path, most)


def read_open(file: BinaryIO, path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of ``path``, open as ``file``; see ``read_plain``. Raises ``OSError``."""
    size = os.fstat(file.fileno()).st_size
    if size > most:  # before any memory is taken
        raise _too_large(path, most)
    data = file.read(max(size, min(most, _CHUNK)) + 1)
    if len(data) > size:  # it grows, or it is a file of /proc, which has no size
        data += file.read(most + 1 - len(data))
    if len(data) > most:
        raise _too_large(path, most)
    return data


def read_bounded(path: Path, most: int) -> bytes:
    """The content of a plain file or a pipe, of at most ``most`` bytes.

    Raises ``OSError``, also for a device, for more bytes, and for a pipe without a writer.
    """
    fd = os.open(path, _PLAIN)
    with open(fd, "rb", buffering=0) as file:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise _refused(path)
        parts = bytearray()
        deadline = time.monotonic() + PIPE_SECONDS
        while part := _next(file, path, deadline):
            parts += part
            if len(parts) > most:
                raise _too_large(path, most)
    return bytes(parts)


def _next(file: BinaryIO, path: Path, deadline: float) -> bytes:
    """What can be read now; empty at the end."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise OSError(errno.ETIMEDOUT, "no process writes to this pipe", str(path))
    return file.read(_CHUNK) or b""


def _too_large(path: Path, most: int) -> OSError:
    return OSError(errno.EFBIG, f"has more than {most:,} bytes", str(path))


def _refused(path: Path) -> OSError:
    if path.is_dir():
        return OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return OSError(errno.EINVAL, "is a device or a pipe, expected a file", str(path))
