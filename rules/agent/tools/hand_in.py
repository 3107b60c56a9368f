"""The results of an agent: its editable files, and a list of other files."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

MOST_BYTES = 1 << 20
"""Of one editable file."""

_MOST_LISTED = 200
_MOST_COUNTED = 100_000
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_COMMENTS = {".py": "#"}


class RefusedError(Exception):
    """A file is refused; the text says why."""


@dataclass(frozen=True)
class HandIn:
    """The files that an agent hands in.

    Attributes:
        files: content by path, one for every editable file. A refused file is replaced by a
            comment, which no gate accepts.
        refused: why, by path.
        dropped: what else the agent left, sorted; at most 200 paths.
        dropped_count: how many there were, at most 100,000.
    """

    files: Mapping[str, bytes] = field(hash=False)
    refused: Mapping[str, str] = field(hash=False)
    dropped: tuple[str, ...]
    dropped_count: int

    @property
    def digest(self) -> str:
        """SHA-256 over the paths and contents of all files."""
        parts = {path: hashlib.sha256(data).hexdigest() for path, data in self.files.items()}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def take(workspace: Path, editable: Iterable[str], given: Collection[str]) -> HandIn:
    """Read the ``editable`` files of a workspace whose processes are dead.

    ``given`` are the read-only names in it.
    """
    workspace.chmod(0o700)  # the agent may have replaced it
    files: dict[str, bytes] = {}
    refused: dict[str, str] = {}
    for path in editable:
        try:
            files[path] = read_editable(workspace, path)
        except RefusedError as refusal:
            refused[path] = str(refusal)
            mark = _COMMENTS.get(Path(path).suffix, "//")
            files[path] = f"{mark} {path} was not handed in: {refusal}\n".encode()
    others = sorted(islice(_others(workspace, {*files, *given}), _MOST_COUNTED))
    return HandIn(files, refused, tuple(others[:_MOST_LISTED]), len(others))


def read_editable(workspace: Path, path: str) -> bytes:
    """Read one file, without following links. Raises RefusedError."""
    *parents, name = path.split("/")
    if not name or ".." in path.split("/") or path.startswith("/"):
        raise RefusedError("its path leaves the workspace")
    directory = os.open(workspace, _OPEN | os.O_DIRECTORY)
    try:
        for parent in parents:
            inner = _open(parent, directory, os.O_DIRECTORY)
            os.close(directory)
            directory = inner
        fd = _open(name, directory)
    finally:
        os.close(directory)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise RefusedError("it is not a regular file")
    with open(fd, "rb") as file:
        if status.st_size > MOST_BYTES:
            raise RefusedError(f"it has {status.st_size} bytes, at most {MOST_BYTES} are allowed")
        return check_text(file.read(MOST_BYTES + 1))


def check_text(data: bytes) -> bytes:
    """The text of ``data``, if it can be a kernel's source. Raises RefusedError."""
    if len(data) > MOST_BYTES:
        raise RefusedError(f"it has more than {MOST_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise RefusedError(f"it is binary: byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise RefusedError(f"it is binary: byte {data.index(0)} is zero")
    return data


def _open(name: str, directory: int, flags: int = 0) -> int:
    try:
        return os.open(name, _OPEN | flags, dir_fd=directory)
    except OSError as error:
        reasons = {
            errno.ENOENT: "it is gone",
            errno.ELOOP: "it is a symbolic link",
            errno.ENOTDIR: "a directory above it is a link or a file",
            errno.EACCES: "it cannot be read",
            errno.ENXIO: "it is not a regular file",
        }
        raise RefusedError(reasons.get(error.errno or 0, str(error.strerror))) from None


def _others(workspace: Path, known: Collection[str]) -> Iterator[str]:
    """Files and links by path, and directories that cannot be listed.

    Not by ``os.walk``, which a deep enough tree would exhaust. Of so many directories that looking
    into them would outlast the session, only the first ones are looked into.
    """
    waiting = [""]
    for _ in range(_MOST_COUNTED):
        if not waiting:
            return
        base = waiting.pop()
        try:
            entries = os.scandir(workspace / base)
        except OSError:  # unreadable, or deeper than paths can express
            yield _printable(base)
            continue
        with entries:
            for entry in entries:
                path = f"{base}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if len(waiting) < _MOST_COUNTED:
                        waiting.append(f"{path}/")
                elif path not in known:
                    yield _printable(path)


def _printable(path: str) -> str:
    return path.encode(errors="backslashreplace").decode()
