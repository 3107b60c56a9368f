"""The store's interfaces in memory; they pass the same conformance suite as those on disk."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult
from kabuild.store.action_cache import blobs_of, decode, encode
from kabuild.store.cas import BLOB_MODE, BlobMissingError, Cas


class MemoryCas:
    """A Cas in a dict. ``blobs`` is open to tests, to lose or damage a blob."""

    def __init__(self, warn: Callable[[str], None] = lambda _: None) -> None:
        self.blobs: dict[str, bytes] = {}
        self._warn = warn

    def has(self, digest: Digest) -> bool:
        return self._checked(digest) is not None

    def missing(self, digests: Iterable[Digest]) -> list[Digest]:
        return [digest for digest in dict.fromkeys(digests) if not self.has(digest)]

    def unusable(self, digests: Iterable[Digest]) -> list[Digest]:
        return self.missing(digests)

    def get(self, digest: Digest) -> bytes:
        data = self._checked(digest)
        if data is None:
            raise BlobMissingError(digest)
        return data

    def put(self, data: bytes) -> Digest:
        digest = Digest.of(data)
        self.blobs[digest.hash] = data
        return digest

    def put_file(self, path: Path, *, move: bool = False) -> Digest:
        digest = self.put(path.read_bytes())
        if move:
            path.unlink()
        return digest

    def link_to(self, digest: Digest, path: Path) -> None:
        path.write_bytes(self.get(digest))
        path.chmod(BLOB_MODE)

    def open(self, digest: Digest) -> BinaryIO:
        return io.BytesIO(self.get(digest))

    def _checked(self, digest: Digest) -> bytes | None:
        data = self.blobs.get(digest.hash)
        if data is not None and Digest.of(data) != digest:
            del self.blobs[digest.hash]
            self._warn(f"dropped a damaged blob: {digest}")
            return None
        return data


class MemoryActionCache:
    """An ActionCache in a dict, through the same messages as on disk."""

    def __init__(self, cas: Cas, warn: Callable[[str], None] = lambda _: None) -> None:
        self.entries: dict[str, bytes] = {}
        self._cas = cas
        self._warn = warn

    def get(self, key: Digest) -> ActionResult | None:
        data = self.entries.get(key.hash)
        if data is None:
            return None
        try:
            result = decode(data, self._cas)
        except ValueError as error:
            self._warn(f"dropped a damaged entry: {error}")
            result = None
        if result is None or self._cas.missing(blobs_of(result)):
            del self.entries[key.hash]
            return None
        return result

    def put(self, key: Digest, result: ActionResult) -> None:
        self.put_message(key, encode(result, self._cas, ended=1_700_000_000.0))

    def put_message(self, key: Digest, message: bytes) -> None:
        self.entries[key.hash] = message
