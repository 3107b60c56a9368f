"""Atomic writes of files; devices and pipes are written through.

Every output of kabuild goes through ``written`` or ``appending``. A device, a pipe, or a link in
the place of a file is never replaced: as root, a rename onto ``/dev/null`` would take it away
from the whole machine.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PIPE_SECONDS = 5.0
"""Seconds to wait for a reader of a named pipe."""

_DESCRIPTORS = re.compile(r"/proc/(\d+)(?:/task/\d+)?/fd")
_UNUSABLE = {stat.S_IFDIR: errno.EISDIR, stat.S_IFSOCK: errno.EOPNOTSUPP}


def atomic_write(
    path: Path, data: bytes, *, mode: int | None = None, durable: bool = False
) -> None:
    """Make ``data`` the content of ``path``; see ``written``. Raises ``OSError``."""
    with written(path, mode=mode, durable=durable) as file:
        file.write(data)


def write_new(path: str, data: bytes, mode: int | None = None) -> os.stat_result:
    """Write a file that is not there yet; returns its status. For thousands of small ones.

    ``mode`` is by default what the umask allows. Raises ``OSError``, and may leave a part then.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    file = os.open(path, flags, 0o666 if mode is None else mode)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        status = os.fstat(file)
        if mode is not None and stat.S_IMODE(status.st_mode) != mode:  # the umask took from it
            os.fchmod(file, mode)
            status = os.fstat(file)
        return status
    finally:
        os.close(file)


def replace_in(path: str, target: str) -> None:
    """Rename ``path`` to ``target``, whose directory is made where it is missing."""
    try:
        os.replace(path, target)  # noqa: PTH105 - thousands of times
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        os.replace(path, target)  # noqa: PTH105


@contextlib.contextmanager
def written(path: Path, *, mode: int | None = None, durable: bool = False) -> Iterator[BinaryIO]:
    """A file to write; after the body, without an exception, ``path`` has its content.

    A plain file is replaced by a rename: this is safe against kills and several writers, of which
    the last wins. With ``durable`` it also survives a power cut. A symbolic link stays and the file
    that it leads to is replaced. A device, a pipe, a file with several names (hard links) or a
    descriptor of this process (``/dev/stdout``) is written through. ``mode`` is by default that of
    the file that was there, else what the umask allows. Missing directories are made. Raises
    ``OSError``.
    """
    status = _status(path)
    real = Path(os.path.realpath(path))
    if status is not None and not _is_replaceable(path, real, status):
        with _through(path, status, os.O_TRUNC) as file:
            yield file
        return
    real.parent.mkdir(parents=True, exist_ok=True)
    temporary = real.parent / f".{real.name[:50]}.{secrets.token_hex(6)}.tmp"
    try:
        with _temporary(temporary, status, mode) as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        _move(temporary, real)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def appending(path: Path, *, fresh: bool = False) -> BinaryIO:
    """``path``, open for writing in pieces while others read it.

    Its content stays, unless ``fresh``. Devices and pipes are written through, as by ``written``.
    Raises ``OSError``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return _through(path, _status(path), os.O_TRUNC if fresh else os.O_APPEND)


def check_output(path: Path) -> None:
    """Raise ``OSError`` if ``path`` cannot be written; creates nothing.

    Its directory must exist: a mistyped one is not created.
    """
    status = _status(path)
    if status is not None:
        if unusable := _UNUSABLE.get(stat.S_IFMT(status.st_mode)):
            raise _error(unusable, path)
        if descriptor_of(path) is None and not os.access(path, os.W_OK):
            raise _error(_refusal(path), path)
        return
    above = Path(os.path.realpath(path)).parent
    if not stat.S_ISDIR(above.stat().st_mode):
        raise _error(errno.ENOTDIR, above)
    if not os.access(above, os.W_OK | os.X_OK):
        raise _error(_refusal(above), above)


def descriptor_of(path: Path) -> int | None:
    """The open descriptor of this process that a path names, as ``/dev/stdout`` names 1."""
    text = os.path.abspath(path)  # noqa: PTH100 - Path.resolve() would go through the link
    for _ in range(40):
        directory, name = os.path.realpath(os.path.dirname(text)), os.path.basename(text)  # noqa: PTH119, PTH120
        match = _DESCRIPTORS.fullmatch(directory)
        if match and name.isdecimal():
            return int(name) if int(match[1]) == os.getpid() else None
        try:
            text = os.path.join(directory, os.readlink(f"{directory}/{name}"))  # noqa: PTH115, PTH118
        except OSError:
            return None
    return None


def _status(path: Path) -> os.stat_result | None:
    """The status behind a path; None if a file can be made. Raises ``OSError``, as for a loop."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_replaceable(path: Path, real: Path, status: os.stat_result) -> bool:
    """Whether it is a plain file under one name, in a directory that can be written.

    A read-only file with several names may be a blob of the store, which is never written to.
    """
    with contextlib.suppress(OSError):
        named = stat.S_ISREG(status.st_mode) and os.path.samestat(real.stat(), status)
        named &= status.st_nlink == 1 or not status.st_mode & 0o222
        writable = os.access(real.parent, os.W_OK | os.X_OK)
        return named and writable and descriptor_of(path) is None
    return False


def _through(path: Path, status: os.stat_result | None, flags: int) -> BinaryIO:
    """Open what stands at ``path`` as it is."""
    number = descriptor_of(path)
    if number is not None:
        return open(os.dup(number), "wb")
    if status and (unusable := _UNUSABLE.get(stat.S_IFMT(status.st_mode))):
        raise _error(unusable, path)
    flags |= os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    deadline = time.monotonic() + PIPE_SECONDS
    while True:
        try:
            fd = os.open(path, flags, 0o666)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > deadline:
                raise _unread(path) if error.errno == errno.ENXIO else error from None
            time.sleep(0.05)
        else:
            os.set_blocking(fd, True)
            return open(fd, "wb")


@contextlib.contextmanager
def _temporary(path: Path, before: os.stat_result | None, mode: int | None) -> Iterator[BinaryIO]:
    """A new file with the owner of the file ``before``."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as f:
        if before is not None and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            with contextlib.suppress(OSError):
                os.fchown(f.fileno(), before.st_uid, before.st_gid)
        if mode is not None or before is not None:
            os.fchmod(f.fileno(), stat.S_IMODE(before.st_mode) if mode is None else mode)  # type: ignore[union-attr]
        yield f


def _move(temporary: Path, real: Path) -> None:
    """Put a file into its place; by copying if that is a mount point."""
    try:
        temporary.replace(real)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        with real.open("r+b") as there, temporary.open("rb") as content:
            shutil.copyfileobj(content, there)
            there.truncate()
        temporary.unlink()


def _unread(path: Path) -> OSError:
    return OSError(errno.ENXIO, "no process reads this pipe", str(path))


def _refusal(path: Path) -> int:
    return errno.EROFS if os.statvfs(path).f_flag & os.ST_RDONLY else errno.EACCES


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


def is_inside(path: str) -> bool:
    """Whether a relative POSIX path stays below its root: no ``..``, not absolute, not empty."""
    parts = path.split("/")
    return bool(path) and not path.startswith("/") and ".." not in parts and "\0" not in path


def remove_tree(path: Path) -> None:
    """Remove a directory with all in it, read-only or not; nothing if there is none.

    Raises ``OSError``.
    """
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    for directory, _, _ in os.walk(path):
        Path(directory).chmod(0o755)
    shutil.rmtree(path)
