"""Takes in the directory that an engine staged: nothing in it is believed, all of it is hashed."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from kabuild.execution.wire import EXEC, NOTE
from kabuild.model.action import OUTPUT_ROOT
from kabuild.model.digest import Digest
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


@dataclass(frozen=True)
class Intake:
    """What was staged: its root, and how many of its files the store had, and lacked."""

    root: Directory
    found: int
    new: int


def take_in(top: int, cas: Cas) -> Intake:
    """The input root that is staged in ``top``, with its files in ``cas``.

    Raises ForeignDirectoryError for links and devices in it, and StoreError.
    """
    taking = _Taking(cas)
    try:
        root = os.open(EXEC, _DIRECTORY, dir_fd=top)
        try:
            return Intake(taking.directory(root, EXEC, 0), taking.found, taking.new)
        finally:
            os.close(root)
    except OSError as error:
        raise ForeignDirectoryError(f"{error.filename or EXEC}: {error.strerror}") from None


class _Taking:
    """One walk over a staged directory; counts files that ``cas`` had, and lacked."""

    def __init__(self, cas: Cas) -> None:
        self._cas = cas
        self.found = self.new = 0

    def directory(self, directory: int, shown: str, depth: int) -> Directory:
        if depth > _MOST_DEPTH:
            what = f"directories are nested deeper than {_MOST_DEPTH}"
            raise ForeignDirectoryError(what)
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
                    directories[name] = self.directory(inner, place, depth + 1)
                finally:
                    os.close(inner)
            elif stat.S_ISREG(mode):
                digest = self._file(directory, name)
                files[name] = FileNode(digest, bool(mode & stat.S_IXUSR))
            else:
                raise ForeignDirectoryError(f"{place} is neither a file nor a directory")
        return Directory(files, directories)

    def _file(self, directory: int, name: str) -> Digest:
        """The digest of what is stored; most files are those of earlier actions, so hashed only."""
        file = os.open(name, _FILE, dir_fd=directory)
        try:
            path = Path(f"/proc/self/fd/{file}")
            with path.open("rb") as source:
                digest = Digest(hashlib.file_digest(source, "sha256").hexdigest(), source.tell())
            if not self._cas.unusable([digest]):
                self.found += 1
                return digest
            self.new += 1
            return self._cas.put_file(path)
        finally:
            os.close(file)
