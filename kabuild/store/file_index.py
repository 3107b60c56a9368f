"""The file index: files that were hashed already and are certainly unchanged.

It makes a second build cheap: an unchanged file costs one ``stat``, without reading it. Like git's
index it trusts a file's status only if the file was not modified shortly before it was hashed: a
file that is written twice within one tick of its file system's clock looks the same.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kabuild.base.bounded_json import read_json
from kabuild.base.own_files import open_own, write_own
from kabuild.base.reading import read_plain
from kabuild.base.seal import Seal, UnsealedError
from kabuild.model.digest import Digest
from kabuild.store.faults import writing

QUIET_NS = 2_000_000_000
"""Nanoseconds: the coarsest tick of common file systems (FAT's), so no finer one escapes."""

KIND = "file index"
_LIMIT = 200_000
_TRIES = 10
"""To read a file between two changes of it."""
"""The number of entries above which only those that this process used are kept."""


@dataclass(frozen=True)
class Signature:
    """A file's status, which identifies its content without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Signature:
        """The signature in a file's status."""
        return cls(
            status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode
        )


class FileIndex:
    """Digests of files by absolute path and signature, kept between runs in one sealed file.

    An index that is lost, damaged, outdated or not sealed costs only time.
    """

    def __init__(self, path: Path, seal: Seal, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._path = path
        self._seal = seal
        self._now_ns = now_ns
        self._guard = threading.Lock()
        self._known: dict[str, list[Any]] | None = None
        self._fresh: dict[str, list[Any]] = {}
        self._seen: set[str] = set()

    def digest(self, path: str, status: os.stat_result | None = None) -> tuple[Digest, Signature]:
        """The digest of a regular file, and its signature at that time.

        ``status`` saves a ``stat`` if the caller has one. Raises ``OSError``, also for a file that
        never has the size that it tells, as in ``/proc``, or keeps changing.
        """
        signature = Signature.of(status or os.stat(path))  # noqa: PTH116 - the hot path
        known = self._load()
        entry = self._fresh.get(path) or known.get(path)
        if entry and entry[2:] == _fields(signature):
            self._seen.add(path)
            return Digest(entry[0], entry[1]), signature
        return self._hash(path)

    def save(self) -> None:
        """Write new entries, merged with those of other processes. Raises StoreError."""
        with self._guard:
            if not self._fresh or self._seal.problem:  # never over the file of the user's key
                return
            with writing(str(self._path.parent)):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with open(open_own(Path(f"{self._path}.lock"))) as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    merged = {**self._read(), **self._fresh}
                    if len(merged) > _LIMIT:
                        used = self._seen | self._fresh.keys()
                        merged = {path: entry for path, entry in merged.items() if path in used}
                    body = json.dumps(merged, separators=(",", ":")).encode()
                    write_own(self._path, self._seal.wrap(KIND, "", body))
            self._known, self._fresh = merged, {}

    def _load(self) -> dict[str, list[Any]]:
        if self._known is None:
            with self._guard:
                self._known = self._read() if self._known is None else self._known
        return self._known

    def _read(self) -> dict[str, list[Any]]:
        """The entries in the file; none if it is absent, or not sealed by this user."""
        try:
            body = self._seal.unwrap(KIND, "", read_plain(self._path))
        except (OSError, UnsealedError):
            return {}
        entries: dict[str, list[Any]] = read_json(body)
        return entries

    def _hash(self, path: str) -> tuple[Digest, Signature]:
        """Hash a file, again if it changed meanwhile; remember it unless it is too young."""
        with open(path, "rb") as file:
            for _ in range(_TRIES):
                before = Signature.of(os.fstat(file.fileno()))
                started_ns = self._now_ns()
                file.seek(0)
                found = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
                if Signature.of(os.fstat(file.fileno())) == before and size == before.size:
                    break
            else:
                raise OSError(errno.EBUSY, "it changes while it is read", path)
        digest = Digest(found, size)
        if started_ns - max(before.mtime_ns, before.ctime_ns) > QUIET_NS:
            with self._guard:
                self._fresh[path] = [digest.hash, digest.size, *_fields(before)]
        return digest, before


def _fields(signature: Signature) -> list[int]:
    return [
        signature.size,
        signature.mtime_ns,
        signature.ctime_ns,
        signature.inode,
        signature.mode,
    ]
