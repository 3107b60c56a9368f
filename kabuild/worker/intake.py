"""Takes in the directory that an engine staged: nothing in it is believed, all of it is hashed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kabuild.execution.wire import EXEC, NOTE
from kabuild.model.action import OUTPUT_ROOT
from kabuild.store.cas import Cas
from kabuild.store.merkle import Directory, FileNode

_MOST_NOTE = 64 << 20
_MOST_DEPTH = 256
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ForeignDirectoryError(Exception):
    """The directory is not one of a wire action."""


def read_staged_note(top: int) -> bytes:
    """The note in the directory with the descriptor ``top``. Raises ForeignDirectoryError."""
    try:
        file = os.open(NOTE, _FILE, dir_fd=top)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_NOTE:
                raise ForeignDirectoryError(f"{NOTE} is not a file of at most {_MOST_NOTE} bytes")
            return Path(f"/proc/self/fd/{file}").read_bytes()
        finally:
            os.close(file)
    except OSError as error:
        raise ForeignDirectoryError(f"{NOTE}: {error.strerror}") from None


def take_in(top: int, cas: Cas) -> Directory:
    """The input root that is staged in ``top``, with its files in ``cas``.

    Raises ForeignDirectoryError for links and devices in it, and StoreError.
    """
    try:
        root = os.open(EXEC, _DIRECTORY, dir_fd=top)
        try:
            return _taken(root, cas, EXEC, 0)
        finally:
            os.close(root)
    except OSError as error:
        raise ForeignDirectoryError(f"{error.filename or EXEC}: {error.strerror}") from None


def _taken(directory: int, cas: Cas, shown: str, depth: int) -> Directory:
    if depth > _MOST_DEPTH:
        raise ForeignDirectoryError(f"more than {_MOST_DEPTH} directories lie in each other")
    files: dict[str, FileNode] = {}
    directories: dict[str, Directory] = {}
    for name in sorted(os.listdir(directory)):
        if depth == 0 and name == OUTPUT_ROOT:
            continue  # which engines make for what is to come
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        place = f"{shown}/{name}"
        if stat.S_ISDIR(mode):
            inner = os.open(name, _DIRECTORY, dir_fd=directory)
            try:
                directories[name] = _taken(inner, cas, place, depth + 1)
            finally:
                os.close(inner)
        elif stat.S_ISREG(mode):
            files[name] = _file(directory, name, cas, executable=bool(mode & stat.S_IXUSR))
        else:
            raise ForeignDirectoryError(f"{place} is neither a file nor a directory")
    return Directory(files, directories)


def _file(directory: int, name: str, cas: Cas, *, executable: bool) -> FileNode:
    file = os.open(name, _FILE, dir_fd=directory)
    try:
        return FileNode(cas.put_file(Path(f"/proc/self/fd/{file}")), executable)
    finally:
        os.close(file)
