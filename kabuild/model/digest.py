"""Content addresses."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from kabuild.base.canonical import int_field, parse_fields, text_field

_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, order=True)
class Digest:
    """SHA-256 and size in bytes of one blob: REAPI's ``Digest``.

    Two blobs with equal digests are the same blob.
    """

    hash: str
    size: int

    def __post_init__(self) -> None:
        if not _HEX.fullmatch(self.hash) or self.size < 0:
            msg = f"not a digest: {self.hash!r}, {self.size!r}"
            raise ValueError(msg)

    @classmethod
    def of(cls, data: bytes) -> Digest:
        """The digest of ``data``."""
        return cls(hashlib.sha256(data).hexdigest(), len(data))

    def to_wire(self) -> bytes:
        """The REAPI message."""
        return text_field(1, self.hash) + int_field(2, self.size)

    @classmethod
    def from_wire(cls, data: bytes) -> Digest:
        """The digest in a REAPI message. Raises ``ValueError``."""
        fields = dict(parse_fields(data))
        hash_, size = fields.get(1, b""), fields.get(2, 0)
        if not isinstance(hash_, bytes) or not isinstance(size, int):
            msg = "not a Digest message"
            raise ValueError(msg)
        return cls(hash_.decode("ascii"), size)

    def __str__(self) -> str:
        return f"{self.hash}/{self.size}"


EMPTY = Digest.of(b"")
