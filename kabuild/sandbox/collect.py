"""Copying declared outputs out of a sandbox whose processes are dead.

Runs in the supervisor, inside the sandbox; the destination is a descriptor that the sandboxed
processes never had. What they left behind is hostile: no link is followed, nothing but regular
files and directories is copied, sizes are bounded by the files' own claims (a sparse file may
claim terabytes). Self-contained.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence

_MAX_DEPTH = 64
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_COPY = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class _Refused(Exception):  # noqa: N818 - a verdict on an output, not an error of this program
    """An output that must not be copied; the text gives the reason."""


class _Missing(Exception):  # noqa: N818 - as above
    """An output that the command did not create."""


class Collector:
    """Copies outputs from below ``root`` to below the directory ``destination``.

    ``destination`` is a descriptor. ``max_bytes`` bounds all copies together.
    """

    def __init__(self, root: str, destination: int, max_bytes: int) -> None:
        self._root = root
        self._destination = destination
        self._left = max_bytes

    def collect(self, paths: Sequence[str]) -> list[tuple[str, str, str]]:
        """(path, ``file`` | ``directory`` | ``missing`` | ``refused``, reason) for each path.

        Raises ``OSError`` when the destination cannot be written.
        """
        return [(path, *self._collect_one(path)) for path in paths]

    def _collect_one(self, path: str) -> tuple[str, str]:
        *parents, name = path.split("/")
        with contextlib.ExitStack() as stack:
            try:
                source = _open_directory(self._root, None, stack)
                copy = self._destination
                for parent in parents:
                    source = _open_directory(parent, source, stack)
                    copy = _make_directory(parent, copy, stack)
                return self._copy(name, source, copy, depth=0), ""
            except _Missing:
                return "missing", ""
            except _Refused as refusal:
                return "refused", str(refusal)

    def _copy(self, name: str, source: int, copy: int, depth: int) -> str:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise _Refused(f"the name {os.fsencode(name)!r} is not UTF-8") from None
        try:
            found = os.stat(name, dir_fd=source, follow_symlinks=False)
        except FileNotFoundError:
            raise _Missing from None
        if stat.S_ISREG(found.st_mode):
            self._copy_file(name, source, copy, found)
            return "file"
        if not stat.S_ISDIR(found.st_mode):
            raise _Refused(f"{name} is {_KINDS.get(stat.S_IFMT(found.st_mode), 'no file')}")
        if depth == _MAX_DEPTH:
            raise _Refused(f"{name} is {_MAX_DEPTH} directories deep")
        with contextlib.ExitStack() as stack:
            inner_source = _open_directory(name, source, stack)
            inner_copy = _make_directory(name, copy, stack)
            for entry in sorted(os.listdir(inner_source)):  # noqa: PTH208 - a descriptor
                self._copy(entry, inner_source, inner_copy, depth + 1)
        return "directory"

    def _copy_file(self, name: str, source: int, copy: int, found: os.stat_result) -> None:
        if found.st_size > self._left:
            raise _Refused(f"{name} has {found.st_size} bytes, where {self._left} are left")
        self._left -= found.st_size
        mode = 0o755 if found.st_mode & 0o111 else 0o644
        with contextlib.ExitStack() as stack:
            try:
                reader = os.open(name, _OPEN_SOURCE, dir_fd=source)
            except PermissionError:
                raise _Refused(f"{name} cannot be read") from None
            stack.callback(os.close, reader)
            writer = os.open(name, _OPEN_COPY, mode, dir_fd=copy)
            stack.callback(os.close, writer)
            while os.sendfile(writer, reader, None, 1 << 24):
                pass


def _open_directory(name: str, parent: int | None, stack: contextlib.ExitStack) -> int:
    try:
        fd = os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        raise _Missing from None
    except PermissionError:
        raise _Refused(f"{name} cannot be read") from None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise _Refused(f"{name} is not a directory") from None
        raise
    stack.callback(os.close, fd)
    return fd


def _make_directory(name: str, parent: int, stack: contextlib.ExitStack) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=parent)
    fd = os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
    stack.callback(os.close, fd)
    return fd
