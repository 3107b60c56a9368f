"""Unpacked toolchains on disk: one directory each, named by digest, complete or absent."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kabuild.base.bounded_json import read_json
from kabuild.base.canonical import canonical_json
from kabuild.base.errors import Reason, ToolchainError
from kabuild.base.fs import remove_tree
from kabuild.base.reading import read_plain
from kabuild.base.seal import Seal, UnsealedError
from kabuild.toolchain.fingerprint import FileDigest, hash_file

KIND = "toolchain"
TREE = "tree"
MANIFEST = "manifest.json"
USED = "used"
WORK = ".fetch"
LOCK = ".lock"

SHOWN = 10
"""Changed files that an error names; further ones are counted."""

Files = Mapping[str, list[str | int]]

_HELD: dict[str, int] = {}
"""By path, the open locked files that keep others from removing trees in use."""

_HOLDING = threading.Lock()


@dataclass(frozen=True)
class TreeStore:
    """Trees by the digest of their sources.

    ``<digest>/tree`` is read-only and appears with one rename, after it is complete;
    ``<digest>.fetch`` is work in progress, which a later fetch goes on with or removes.
    A process that changes a tree holds ``<digest>.lock``, and its users share the lock of
    ``<digest>/used``; a process releases both at its end. Only trees that this user unpacked count:
    the manifest is sealed, since the digest is of the archives and not of the files on disk.
    """

    root: Path
    seal: Seal

    def tree(self, digest: str) -> Path:
        """The directory of the files, whether it exists or not."""
        return self.root / digest / TREE

    def manifest(self, digest: str) -> Path:
        """The file with the list of unpacked files."""
        return self.root / digest / MANIFEST

    def has(self, digest: str) -> bool:
        """Whether the tree exists, is complete, and was unpacked by this user."""
        try:
            self._manifest(digest)
        except (OSError, UnsealedError):
            return False
        return True

    def is_unsealed(self, digest: str) -> bool:
        """Whether a tree exists that another user may have made."""
        return self.manifest(digest).is_file() and not self.has(digest)

    def use(self, digest: str) -> bool:
        """Use the tree until this process ends; False if it is missing.

        Nobody removes it meanwhile. The use is noted for the garbage collector.
        """
        used = str(self.root / digest / USED)
        with _HOLDING:
            if not _is_held(used):
                try:
                    _HELD[used] = os.open(used, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
                except OSError:
                    return False
                fcntl.flock(_HELD[used], fcntl.LOCK_SH)
            with contextlib.suppress(OSError):
                os.utime(used)
            return _is_held(used) and self.has(digest)

    @contextlib.contextmanager
    def working(self, digest: str) -> Iterator[Path]:
        """The directory for work on a tree, locked against other processes.

        Waits for others; callers must check again whether the tree exists. Raises ToolchainError.
        """
        work = self.root / f"{digest}{WORK}"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with (self.root / f"{digest}{LOCK}").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield work
        except OSError as error:
            raise ToolchainError(
                Reason.STORE_UNWRITABLE,
                f"toolchains cannot be stored in {self.root}: {error.strerror}",
                hint="free some space, or set KABUILD_CACHE to a directory on another disk",
            ) from error

    def publish(self, digest: str, work: Path, files: Files) -> None:
        """Make ``work/tree`` the tree of that digest. Raises ``OSError``."""
        entry = work / "entry"
        remove_tree(entry)
        entry.mkdir()
        # A read-only directory cannot be moved; its content stays unchanged.
        (work / TREE).chmod(0o755)
        (work / TREE).rename(entry / TREE)
        (entry / TREE).chmod(0o555)
        size = sum(int(entry[2]) for entry in files.values())
        (entry / USED).write_text(str(size))
        manifest = canonical_json({"schema": 1, "bytes": size, "files": dict(files)})
        (entry / MANIFEST).write_bytes(self.seal.wrap(KIND, digest, manifest))
        self.remove(digest)
        entry.rename(self.root / digest)
        remove_tree(work)

    def remove(self, digest: str) -> None:
        """Remove a tree: first rename, then delete it. Raises ``OSError``."""
        path = self.root / digest
        if os.path.lexists(path):
            gone = self.root / f"{digest}.removed"
            remove_tree(gone)
            path.rename(gone)
            remove_tree(gone)

    def discard(self, digest: str) -> None:
        """Remove a tree that is not in use. Raises ToolchainError."""
        with self.working(digest) as work, contextlib.ExitStack() as stack:
            with contextlib.suppress(FileNotFoundError):
                used = stack.enter_context((self.root / digest / USED).open())
                try:
                    fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise ToolchainError(
                        Reason.STORE_UNWRITABLE,
                        f"{self.tree(digest)} is in use by another process",
                        hint="try again when no build runs",
                    ) from None
            self.remove(digest)
            remove_tree(work)

    def size(self, digest: str) -> int:
        """The size of a tree in bytes. Raises ``OSError`` and ``ValueError``."""
        return int(self._read(digest).get("bytes", 0))

    def files(self, digest: str) -> Files:
        """The unpacked files. Raises ``OSError`` and ``ValueError``."""
        files = self._read(digest).get("files")
        if not isinstance(files, dict):
            raise ValueError("its manifest is damaged")
        return files

    def differences(self, digest: str) -> list[str]:
        """Files of a tree that changed after unpacking: ``bin/nvcc: changed``. Reads all files.

        Raises ``OSError`` and ``ValueError`` without a manifest.
        """
        return compare(self.files(digest), listing(self.tree(digest)))

    def _manifest(self, digest: str) -> bytes:
        """Raises ``OSError`` and UnsealedError, a ``ValueError``."""
        return self.seal.unwrap(KIND, digest, read_plain(self.manifest(digest)))

    def _read(self, digest: str) -> dict[str, Any]:
        manifest = read_json(self._manifest(digest))
        return manifest if isinstance(manifest, dict) else {}


def _is_held(used: str) -> bool:
    """Whether this process holds the current file; releases a replaced one."""
    held = _HELD.get(used)
    if held is None:
        return False
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(held), os.stat(used)):  # noqa: PTH116 - one per use
            return True
    os.close(_HELD.pop(used))
    return False


def listing(tree: Path) -> Files:
    """The files below a directory, in a manifest's form. Raises ``OSError``."""
    files: dict[str, list[str | int]] = {}
    for directory, directories, names in os.walk(tree):
        links = [name for name in directories if os.path.islink(f"{directory}/{name}")]  # noqa: PTH114
        for name in (*names, *links):
            path = Path(directory, name)
            files[path.relative_to(tree).as_posix()] = describe(path, hash_file)
    return files


def describe(path: Path, read: FileDigest) -> list[str | int]:
    """The manifest's entry for one file or link. Raises ``OSError``."""
    if path.is_symlink():
        return ["link", str(path.readlink()), 0]
    digest = read(path)
    kind = "executable" if path.stat().st_mode & 0o100 else "file"
    return [kind, digest.hash, digest.size]


def compare(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The differences between two listings, one line each, sorted by path."""
    lines = []
    for path in sorted({*wanted, *found}):
        if path not in found:
            lines.append(f"{path}: missing")
        elif path not in wanted:
            lines.append(f"{path}: added")
        elif list(wanted[path]) != list(found[path]):
            lines.append(f"{path}: changed")
    return lines


def few(lines: Sequence[str]) -> list[str]:
    """The first differences of ``compare``, and the number of others, for an error."""
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"and {more} more"] if more > 0 else [])]
