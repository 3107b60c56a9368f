"""kabuild's own files, in the store and below ``out/``.

A user may name a device or a link as an output, which is written through (``fs``). Here anything
but a plain file is damage, and is replaced.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from pathlib import Path

from kabuild.base.fs import remove_tree

_NO_FILE = {errno.EISDIR, errno.ELOOP, errno.ENXIO}
_ENDS = ".tmp"
_TRIES = 3
"""Another process may remove a temporary file in the moment before it is locked."""


def write_own(path: Path, data: bytes) -> None:
    """Make ``path`` a plain file with this content, at once. Raises ``OSError``.

    What a process that was killed left of writing it is removed.
    """
    for tries in range(1, _TRIES + 1):
        try:
            _write_once(path, data)
        except FileNotFoundError:
            if tries == _TRIES:
                raise
        else:
            return


def _write_once(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    begins = f".{path.name[:50]}."
    _sweep(path.parent, begins)
    temporary = path.with_name(f"{begins}{secrets.token_hex(6)}{_ENDS}")
    try:
        with temporary.open("xb") as file:
            with contextlib.suppress(OSError):  # some file systems have no locks: nothing is swept
                fcntl.flock(file, fcntl.LOCK_EX)
            file.write(data)
            file.flush()
            try:
                temporary.replace(path)
            except IsADirectoryError:
                remove_tree(path)
                temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sweep(directory: Path, begins: str) -> None:
    """Remove the temporary files that are not locked: whoever wrote them is gone."""
    with os.scandir(directory) as entries:
        left = [e.path for e in entries if e.name.startswith(begins) and e.name.endswith(_ENDS)]
    for path in left:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)  # noqa: PTH108 - no Path for each of them
            finally:
                os.close(descriptor)


def open_own(path: Path, mode: int = 0o644) -> int:
    """A descriptor to read, write and lock a file, which is created if needed.

    Never waits: opening a pipe for reading and writing needs no peer. Raises ``OSError``.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, mode)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
    else:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    remove_tree(path)
    return os.open(path, flags, mode)
