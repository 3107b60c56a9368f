"""Content-addressed storage: blobs by SHA-256."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Protocol

from kabuild.base.errors import Reason, StoreError
from kabuild.base.fs import remove_tree, replace_in, write_new
from kabuild.base.reading import open_plain, read_plain
from kabuild.model.digest import Digest
from kabuild.store.eviction import TOUCH_AFTER, note_use
from kabuild.store.faults import store_error, writing
from kabuild.store.scratch import Scratch

BLOB_MODE = 0o555
"""The mode of blobs: read and execute, as in Bazel's disk cache."""

MOST_BLOB = 4 << 30
"""The largest blob, in bytes: what a sandbox lets a file have; sources are smaller."""

_CHUNK = 1 << 20

_LINK_ATTEMPTS = 10

_NO_LINK = {errno.EXDEV, errno.EMLINK, errno.EPERM}
"""Errors that mean copying instead of linking: other or unsuitable file systems, too many links."""


class Cas(Protocol):
    """Blobs by digest. Many threads and processes may use one at once.

    A blob is either whole or absent: a damaged one is dropped when noticed, so that its producer
    runs again.
    """

    def has(self, digest: Digest) -> bool:
        """Whether the blob is present, with the right size."""
        ...

    def missing(self, digests: Iterable[Digest]) -> list[Digest]:
        """The absent ones of ``digests``, in order, without duplicates."""
        ...

    def unusable(self, digests: Iterable[Digest]) -> list[Digest]:
        """The absent or damaged ones of ``digests``, in order, without duplicates.

        Damaged ones are dropped, so that they can be stored again.
        """
        ...

    def get(self, digest: Digest) -> bytes:
        """The blob's bytes, verified. Raises StoreError(BLOB_MISSING)."""
        ...

    def put(self, data: bytes) -> Digest:
        """Store ``data``. Raises StoreError(STORE_FULL or STORE_UNWRITABLE)."""
        ...

    def put_file(self, path: Path, *, move: bool = False) -> Digest:
        """Store a regular file's content; ``move`` may consume the file instead of copying.

        The digest is that of the stored bytes, even if the file changes meanwhile. Raises
        StoreError for the store, ``OSError`` for ``path``.
        """
        ...

    def link_to(self, digest: Digest, path: Path) -> None:
        """Make ``path`` hold the blob, verified, mode 0555: a hard link where possible.

        Raises StoreError for the store, ``OSError`` where ``path`` cannot be made.
        """
        ...

    def open(self, digest: Digest) -> BinaryIO:
        """The blob as a stream, verified. Raises StoreError(BLOB_MISSING)."""
        ...


class BlobMissingError(StoreError):
    """Required blobs are not in the store, or were damaged and dropped."""

    def __init__(self, *digests: Digest, why: str = "not in the store") -> None:
        verb = "blob {} is" if len(digests) == 1 else "blobs {} are"
        names = ", ".join(map(str, digests))
        super().__init__(Reason.BLOB_MISSING, f"{verb.format(names)} {why}")
        self.digests = digests


class DiskCas:
    """A Cas below one directory, laid out as Bazel's disk cache: ``cas/ab/abcd...``.

    Blobs appear by rename, so killing a writer leaves nothing half-written. Reading
    verifies the hash; linking verifies it once per process and file.
    """

    def __init__(
        self,
        root: Path,
        scratch: Scratch,
        *,
        warn: Callable[[str], None] = lambda _: None,
        added: Callable[[int], None] = lambda _: None,
    ) -> None:
        """``warn`` is called with damage, ``added`` with the size of every new blob."""
        self._root = str(root)
        self._blobs = f"{root}/cas"
        self._scratch = scratch
        self._warn = warn
        self._added = added
        self._verified: dict[str, tuple[int, int, int]] = {}

    def path_of(self, digest: Digest) -> str:
        """The path of a blob."""
        return f"{self._blobs}/{digest.hash[:2]}/{digest.hash}"

    def has(self, digest: Digest) -> bool:
        """Whether the blob is present, with the right size."""
        return self._stat(digest) is not None

    def missing(self, digests: Iterable[Digest]) -> list[Digest]:
        """The absent ones of ``digests``, in order, without duplicates."""
        return [digest for digest in dict.fromkeys(digests) if self._stat(digest) is None]

    def unusable(self, digests: Iterable[Digest]) -> list[Digest]:
        """The absent or damaged ones of ``digests``; see Cas."""
        return [digest for digest in dict.fromkeys(digests) if not self._holds(digest)]

    def get(self, digest: Digest) -> bytes:
        """The blob's bytes, verified. Raises StoreError(BLOB_MISSING)."""
        if self._stat(digest) is None:
            raise BlobMissingError(digest)
        try:
            data = read_plain(Path(self.path_of(digest)), digest.size)
        except FileNotFoundError:
            raise BlobMissingError(digest) from None
        except OSError as error:
            if error.errno == errno.EFBIG:  # it grew meanwhile
                raise self._evict(digest, "its size") from None
            raise store_error(error, self._root) from error
        if hashlib.sha256(data).hexdigest() != digest.hash:
            raise self._evict(digest, "its content")
        return data

    def put(self, data: bytes) -> Digest:
        """Store ``data``. Raises StoreError(STORE_FULL or STORE_UNWRITABLE)."""
        digest = Digest.of(data)
        if self._stat(digest) is None or not self._holds(digest):
            with writing(self._root):
                temporary = self._scratch.name("blob")
                try:
                    status = write_new(temporary, data, BLOB_MODE)
                    self._rename(temporary, digest, status)
                except BaseException:
                    Path(temporary).unlink(missing_ok=True)
                    raise
        return digest

    def put_file(self, path: Path, *, move: bool = False) -> Digest:
        """Store a regular file's content; see Cas."""
        if move:
            with path.open("rb") as file:
                hasher = hashlib.file_digest(file, "sha256")
                digest = Digest(hasher.hexdigest(), file.tell())
            if not self._holds(digest):
                with writing(self._root):
                    os.utime(path)
                    self._publish(path, digest)
            return digest
        with path.open("rb") as source, writing(self._root):
            temporary = self._scratch.path("blob")
            try:
                digest = _copy_hashing(source, temporary)
                if not self._holds(digest):
                    self._publish(temporary, digest)
            finally:
                temporary.unlink(missing_ok=True)
        return digest

    def link_to(self, digest: Digest, path: Path) -> None:
        """Make ``path`` hold the blob, verified; see Cas."""
        for attempt in range(_LINK_ATTEMPTS):
            self._verify(digest)
            try:
                os.link(self.path_of(digest), path)
            except FileNotFoundError as error:
                # Evicted, which verifying reports; or just replaced by an equal blob.
                if attempt + 1 == _LINK_ATTEMPTS:
                    raise store_error(error, self._root) from error
            except OSError as error:
                if error.errno not in _NO_LINK:
                    raise
                self._copy_to(digest, path)
                return
            else:
                return

    def open(self, digest: Digest) -> BinaryIO:
        """The blob as a stream, verified. Raises StoreError(BLOB_MISSING)."""
        self._verify(digest)
        try:
            return open_plain(Path(self.path_of(digest)))
        except FileNotFoundError:
            raise BlobMissingError(digest) from None

    def _copy_to(self, digest: Digest, path: Path) -> None:
        with self.open(digest) as source:
            try:
                _copy_hashing(source, path)
                path.chmod(BLOB_MODE)
            except OSError as error:
                error.filename = error.filename or str(path)
                raise

    def _stat(self, digest: Digest) -> os.stat_result | None:
        """The blob's file status, or None. Evicts a blob of the wrong size; notes the use."""
        path = self.path_of(digest)
        try:
            status = os.lstat(path)  # the hot line of a null build
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise store_error(error, self._root) from error
        if status.st_size != digest.size or not stat.S_ISREG(status.st_mode):
            self._evict(digest, "its size")
            return None
        if time.time() - status.st_mtime > TOUCH_AFTER and not note_use(self._root, path):
            return None
        return status

    def _holds(self, digest: Digest) -> bool:
        """Whether the blob is present and undamaged; a damaged blob is removed."""
        try:
            self._verify(digest)
        except BlobMissingError:
            return False
        return True

    def _verify(self, digest: Digest) -> None:
        """Hash the blob, unless this process did so already and the file is unchanged.

        ctime is not part of the signature: every new hard link changes it.
        """
        status = self._stat(digest)
        if status is None:
            raise BlobMissingError(digest)
        if stat.S_IMODE(status.st_mode) != BLOB_MODE:  # unreadable: fails later, unseen
            with contextlib.suppress(OSError):  # another user's file
                Path(self.path_of(digest)).chmod(BLOB_MODE)
        signature = (status.st_ino, status.st_size, status.st_mtime_ns)
        if self._verified.get(digest.hash) == signature:
            return
        try:
            with open_plain(Path(self.path_of(digest))) as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
                status = os.fstat(file.fileno())
        except FileNotFoundError:
            raise BlobMissingError(digest) from None
        except OSError as error:
            raise store_error(error, self._root) from error
        if found != digest.hash:
            raise self._evict(digest, "its content")
        self._note(digest, status)

    def _note(self, digest: Digest, status: os.stat_result) -> None:
        self._verified[digest.hash] = (status.st_ino, status.st_size, status.st_mtime_ns)

    def _publish(self, file: Path, digest: Digest) -> None:
        """Rename ``file``, whose bytes have ``digest``, into place."""
        file.chmod(BLOB_MODE)
        self._rename(str(file), digest, file.stat())

    def _rename(self, file: str, digest: Digest, status: os.stat_result) -> None:
        replace_in(file, self.path_of(digest))
        self._note(digest, status)
        self._added(digest.size)

    def _evict(self, digest: Digest, what: str) -> BlobMissingError:
        """Drop a damaged blob; returns the error that says so."""
        with contextlib.suppress(OSError):
            remove_tree(Path(self.path_of(digest)))
        self._verified.pop(digest.hash, None)
        self._warn(f"dropped a damaged blob from the store: {what} does not match {digest}")
        return BlobMissingError(digest, why="damaged and was dropped")


def _copy_hashing(source: BinaryIO, target: Path) -> Digest:
    """Copy a stream into a new file; the digest of exactly what was written."""
    hasher, size = hashlib.sha256(), 0
    with target.open("xb") as out:
        while chunk := source.read(_CHUNK):
            hasher.update(chunk)
            out.write(chunk)
            size += len(chunk)
    return Digest(hasher.hexdigest(), size)
