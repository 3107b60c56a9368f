"""Messages of the Remote Execution API v2 and of ByteStream, as bytes.

Field numbers are those of remote_execution.proto and bytestream.proto. Unknown fields are ignored,
as protobuf wants. A malformed message is a ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kabuild.base.canonical import (
    bytes_field,
    int_field,
    message_field,
    parse_fields,
    repeated_field,
    text_field,
)
from kabuild.model.digest import Digest

_API = "/build.bazel.remote.execution.v2."
GET_CAPABILITIES = f"{_API}Capabilities/GetCapabilities"
GET_RESULT = f"{_API}ActionCache/GetActionResult"
UPDATE_RESULT = f"{_API}ActionCache/UpdateActionResult"
FIND_MISSING = f"{_API}ContentAddressableStorage/FindMissingBlobs"
BATCH_READ = f"{_API}ContentAddressableStorage/BatchReadBlobs"
BATCH_UPDATE = f"{_API}ContentAddressableStorage/BatchUpdateBlobs"
STREAM_READ = "/google.bytestream.ByteStream/Read"
STREAM_WRITE = "/google.bytestream.ByteStream/Write"

OVERHEAD = 256
"""Bytes that a blob takes in a batch beside its own, at most."""

_ANY_SIZE = (1 << 64) - 1
"""-1, by which a server says that it has the blob already."""


class Fields:
    """The fields of one message by their numbers."""

    def __init__(self, data: bytes) -> None:
        """Parse ``data``. Raises ``ValueError`` if it is not a message."""
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in parse_fields(data):
            self._fields.setdefault(number, []).append(value)

    def number(self, number: int) -> int:
        """A number; 0 if absent."""
        value = self._fields.get(number, [0])[-1]
        if isinstance(value, bytes):
            raise ValueError(f"field {number} is not a number")
        return value

    def data(self, number: int) -> bytes:
        """Bytes or a message; empty if absent."""
        value = self._fields.get(number, [b""])[-1]
        if isinstance(value, int):
            raise ValueError(f"field {number} is a number")
        return value

    def text(self, number: int) -> str:
        """A string."""
        return self.data(number).decode(errors="replace")

    def messages(self, number: int) -> Iterator[bytes]:
        """The messages of a repeated field."""
        for value in self._fields.get(number, []):
            if isinstance(value, int):
                raise ValueError(f"field {number} is a number")
            yield value

    def numbers(self, number: int) -> Iterator[int]:
        """The numbers of a repeated field, packed or not."""
        for value in self._fields.get(number, []):
            if isinstance(value, int):
                yield value
            else:
                yield from _packed(value)


def _packed(data: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


@dataclass(frozen=True)
class Blob:
    """One blob of an answer: its bytes, or what went wrong with it (``code`` is gRPC's)."""

    digest: Digest
    data: bytes = b""
    code: int = 0
    problem: str = ""


def get_result(instance: str, key: Digest) -> bytes:
    """``GetActionResultRequest``."""
    return text_field(1, instance) + message_field(2, key.to_wire())


def update_result(instance: str, key: Digest, result: bytes) -> bytes:
    """``UpdateActionResultRequest``."""
    return get_result(instance, key) + message_field(3, result)


def find_missing(instance: str, digests: Iterable[Digest]) -> bytes:
    """``FindMissingBlobsRequest``."""
    return text_field(1, instance) + repeated_field(2, (d.to_wire() for d in digests))


def missing_of(answer: bytes) -> list[Digest]:
    """What a ``FindMissingBlobsResponse`` says is missing."""
    return [Digest.from_wire(value) for value in Fields(answer).messages(2)]


def batch_read(instance: str, digests: Iterable[Digest]) -> bytes:
    """``BatchReadBlobsRequest``; without a compressor the answer has plain bytes."""
    return text_field(1, instance) + repeated_field(2, (d.to_wire() for d in digests))


def blobs_of_batch(answer: bytes) -> Iterator[Blob]:
    """The blobs of a ``BatchReadBlobsResponse``, not hashed yet."""
    for part in Fields(answer).messages(1):
        blob = Fields(part)
        status = Fields(blob.data(3))
        digest = Digest.from_wire(blob.data(1))
        yield Blob(digest, blob.data(2), status.number(1), status.text(2))


def batch_update(instance: str, blobs: Iterable[tuple[Digest, bytes]]) -> bytes:
    """``BatchUpdateBlobsRequest``."""
    return text_field(1, instance) + repeated_field(
        2, (message_field(1, digest.to_wire()) + bytes_field(2, data) for digest, data in blobs)
    )


def refused_of(answer: bytes) -> Iterator[Blob]:
    """The blobs that a ``BatchUpdateBlobsResponse`` says were not stored."""
    for part in Fields(answer).messages(1):
        blob = Fields(part)
        status = Fields(blob.data(2))
        if status.number(1):
            digest = Digest.from_wire(blob.data(1))
            yield Blob(digest, code=status.number(1), problem=status.text(2))


def stream_read(instance: str, digest: Digest) -> bytes:
    """``ReadRequest`` for the whole of a blob."""
    return text_field(1, f"{_prefix(instance)}blobs/{digest.hash}/{digest.size}")


def piece_of(message: bytes) -> bytes:
    """The bytes of a ``ReadResponse``."""
    return Fields(message).data(10)


def stream_write(
    instance: str, upload: str, digest: Digest, pieces: Iterable[bytes]
) -> Iterator[bytes]:
    """The ``WriteRequest`` messages for a blob; ``upload`` names this upload, as a UUID."""
    name = f"{_prefix(instance)}uploads/{upload}/blobs/{digest.hash}/{digest.size}"
    at = 0
    for piece in pieces:
        done = int_field(3, int(at + len(piece) >= digest.size))
        first = text_field(1, name) if at == 0 else b""
        yield first + int_field(2, at) + done + bytes_field(10, piece)
        at += len(piece)


def is_committed(answer: bytes, digest: Digest) -> bool:
    """Whether a ``WriteResponse`` says that the whole blob is stored."""
    return Fields(answer).number(1) in {digest.size, _ANY_SIZE}


def _prefix(instance: str) -> str:
    return f"{instance}/" if instance else ""
