"""The first part of the file: its content, so that a reader can refuse it before unpacking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.base.canonical import canonical_json
from kabuild.base.errors import BundleError, Reason
from kabuild.base.printing import shortened
from kabuild.model.digest import Digest

SCHEMA = "kabuild/cache/1"
NAME = "manifest.json"
BLOBS = "cas/"
RESULTS = "ac/"
LARGEST_RESULT = 16 << 20


@dataclass(frozen=True)
class Manifest:
    """Sizes of blobs by hash; of results, digests of their entries by the hash of the key."""

    blobs: Mapping[str, int] = field(hash=False)
    results: Mapping[str, Digest] = field(hash=False)

    @property
    def size(self) -> int:
        """Bytes of it all."""
        return sum(self.blobs.values()) + sum(entry.size for entry in self.results.values())

    def to_json(self) -> bytes:
        """Canonical bytes."""
        return canonical_json(
            {
                "schema": SCHEMA,
                "blobs": dict(self.blobs),
                "results": {key: [entry.hash, entry.size] for key, entry in self.results.items()},
            }
        )

    @classmethod
    def from_json(cls, data: bytes) -> Manifest:
        """Read and check a manifest. Raises BundleError for anything else."""
        try:
            value = bounded_json(data)
            schema = value["schema"]
        except (ValueError, TypeError, KeyError):
            raise damaged("its manifest is not valid") from None
        if schema != SCHEMA:
            raise BundleError(
                Reason.BUNDLE_VERSION,
                f"the file's format is {shortened(repr(schema), 80)}; "
                f"this kabuild reads {SCHEMA!r}",
                hint="'kabuild replay' reads files of 'kabuild publish'",
            )
        try:
            blobs = {Digest(name, _size(size)).hash: size for name, size in value["blobs"].items()}
            results = {
                Digest(key, 0).hash: Digest(hash_, _size(size))
                for key, (hash_, size) in value["results"].items()
            }
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise damaged(f"its manifest is malformed: {error}") from None
        if any(entry.size > LARGEST_RESULT for entry in results.values()):
            raise damaged(f"a result is larger than {LARGEST_RESULT} bytes")
        return cls(blobs, results)


def _size(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise ValueError(f"{value!r} is not a size")
    return value


def damaged(why: str) -> BundleError:
    """The error for a file that is damaged or contradicts itself."""
    what = f"nothing was imported: {shortened(why)}"
    return BundleError(Reason.BUNDLE_DAMAGED, what, hint="export it again")
