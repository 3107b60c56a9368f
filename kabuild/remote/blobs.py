"""The blobs of a server: finding missing ones, uploading and fetching."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from uuid import uuid4

from kabuild.base.errors import Reason, RemoteError
from kabuild.model.digest import EMPTY, Digest
from kabuild.remote.loss import Loss
from kabuild.remote.messages import (
    BATCH_READ,
    BATCH_UPDATE,
    FIND_MISSING,
    OVERHEAD,
    STREAM_READ,
    STREAM_WRITE,
    batch_read,
    batch_update,
    blobs_of_batch,
    find_missing,
    is_committed,
    missing_of,
    piece_of,
    refused_of,
    stream_read,
    stream_write,
)
from kabuild.remote.rpc import Rpc
from kabuild.store.cas import Cas
from kabuild.store.store import Store

_FIND = 10_000
"""Digests in one question; each takes about 75 bytes."""

_AT_ONCE = 8
"""Batches that are held in memory."""

_CHUNK = 1 << 20
_SLOWEST = 1 << 20
"""Bytes per second below which a stream is given up, where its size allows more than a timeout."""


class _DamagedError(Exception):
    """A stream with other content than its digest says."""


class RemoteBlobs:
    """Blobs by digest on a server. ``batch`` is how many bytes go in one message."""

    def __init__(self, rpc: Rpc, batch: int) -> None:
        self._rpc = rpc
        self._instance = rpc.endpoint.instance
        self._batch = batch

    def missing(self, digests: Iterable[Digest]) -> list[Digest]:
        """Those of ``digests`` that the server lacks, each once. Raises RemoteError."""
        asked = [*dict.fromkeys(digests)]
        requests = [
            find_missing(self._instance, asked[at : at + _FIND])
            for at in range(0, len(asked), _FIND)
        ]
        lacking: set[Digest] = set()
        for answer in self._rpc.wave(FIND_MISSING, requests):
            if answer is None:
                raise _unreadable("FindMissingBlobs: NOT_FOUND")
            try:
                lacking.update(missing_of(answer))
            except ValueError as error:
                raise _unreadable(error) from None
        return [digest for digest in asked if digest in lacking]

    def upload(self, digests: Iterable[Digest], cas: Cas) -> None:
        """Send what the server lacks. Raises RemoteError, and StoreError of ``cas``."""
        lacking = self.missing(digests)
        small = [digest for digest in lacking if self._fits(digest)]
        groups = self._groups(small)
        while part := [*islice(groups, _AT_ONCE)]:
            self._send([batch_update(self._instance, [(d, cas.get(d)) for d in g]) for g in part])
        for digest in lacking:
            if not self._fits(digest):
                self._write(digest, cas)

    def fetch(self, digests: Iterable[Digest], store: Store) -> dict[Digest, Loss]:
        """Get blobs into ``store``, each hashed; those that did not come, and why.

        Raises RemoteError where the server does not answer, and StoreError.
        """
        lost: dict[Digest, Loss] = {}
        wanted = [*dict.fromkeys(digests)]
        if EMPTY in wanted:
            store.cas.put(b"")
        groups = self._groups(d for d in wanted if self._fits(d) and d != EMPTY)
        while part := [*islice(groups, _AT_ONCE)]:
            requests = [batch_read(self._instance, group) for group in part]
            answers = self._rpc.wave(BATCH_READ, requests)
            for group, answer in zip(part, answers, strict=True):
                lost |= _keep(group, answer, store.cas)
        for digest in wanted:
            if not self._fits(digest) and (loss := self._read(digest, store)):
                lost[digest] = loss
        return lost

    def _fits(self, digest: Digest) -> bool:
        return digest.size + OVERHEAD <= self._batch

    def _groups(self, digests: Iterable[Digest]) -> Iterator[list[Digest]]:
        """``digests`` in groups that fit into one message each."""
        group: list[Digest] = []
        size = 0
        for digest in digests:
            if group and size + digest.size + OVERHEAD > self._batch:
                yield group
                group, size = [], 0
            group.append(digest)
            size += digest.size + OVERHEAD
        if group:
            yield group

    def _send(self, requests: Sequence[bytes]) -> None:
        for answer in self._rpc.wave(BATCH_UPDATE, requests):
            if answer is None:
                raise RemoteError(Reason.REMOTE_REFUSED, "BatchUpdateBlobs: NOT_FOUND")
            try:
                refused = next(refused_of(answer), None)
            except ValueError as error:
                raise _unreadable(error) from None
            if refused:
                what = f"blob {refused.digest} was not stored: {refused.problem or refused.code}"
                raise RemoteError(Reason.REMOTE_REFUSED, what)

    def _write(self, digest: Digest, cas: Cas) -> None:
        def requests() -> Iterator[bytes]:
            with cas.open(digest) as file:
                pieces = iter(partial(file.read, _CHUNK), b"")
                yield from stream_write(self._instance, str(uuid4()), digest, pieces)

        answer = self._rpc.write(STREAM_WRITE, requests, self._seconds(digest))
        try:
            stored = is_committed(answer, digest)
        except ValueError as error:
            raise _unreadable(error) from None
        if not stored:
            what = f"blob {digest} was stored in part"
            raise RemoteError(Reason.REMOTE_REFUSED, what)

    def _read(self, digest: Digest, store: Store) -> Loss | None:
        try:
            self._rpc.again(STREAM_READ, lambda: store.put_stream(self._pieces(digest)))
        except _DamagedError:
            return Loss.DAMAGED
        except RemoteError as error:
            if error.reason is not Reason.REMOTE_MISSING:
                raise
            return Loss.GONE
        return None

    def _pieces(self, digest: Digest) -> Iterator[bytes]:
        """The blob, which is not stored unless it ends as the digest says."""
        hasher, size = hashlib.sha256(), 0
        request = stream_read(self._instance, digest)
        for message in self._rpc.read(STREAM_READ, request, self._seconds(digest)):
            try:
                piece = piece_of(message)
            except ValueError:
                raise _DamagedError from None
            size += len(piece)
            if size > digest.size:
                raise _DamagedError
            hasher.update(piece)
            yield piece
        if Digest(hasher.hexdigest(), size) != digest:
            raise _DamagedError

    def _seconds(self, digest: Digest) -> float:
        return max(self._rpc.endpoint.timeout, digest.size / _SLOWEST)


def _keep(group: Sequence[Digest], answer: bytes | None, cas: Cas) -> Mapping[Digest, Loss]:
    """Store the blobs of one answer; those of ``group`` that are not in it, or not whole."""
    lost = dict.fromkeys(group, Loss.GONE)
    if answer is None:
        return lost
    try:
        for blob in blobs_of_batch(answer):
            if blob.digest not in lost or blob.code:
                continue
            if Digest.of(blob.data) != blob.digest:
                lost[blob.digest] = Loss.DAMAGED
                continue
            cas.put(blob.data)
            del lost[blob.digest]
    except ValueError as error:
        raise _unreadable(error) from None
    return lost


def _unreadable(error: object) -> RemoteError:
    return RemoteError(Reason.REMOTE_REFUSED, f"the server's answer cannot be read: {error}")
