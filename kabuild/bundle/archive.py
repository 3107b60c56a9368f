"""The file of a bundle: a tar compressed with zstd; equal content gives equal bytes.

First ``manifest.json``, then ``provenance.json``, then ``blobs/<sha256>`` in the order of their
hashes, each once. Times, owners and modes are constant. Anyone can read it with zstd and tar. This
reader trusts nothing: it reads a member only up to the size in the manifest, and hashes it before
use. ``base.container`` lists the limits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.container import Container, DamagedError, Packer, opened
from kabuild.base.errors import BundleError, Reason
from kabuild.base.fs import written
from kabuild.bundle.manifest import Manifest, damaged
from kabuild.bundle.provenance import provenance
from kabuild.model.digest import Digest

MANIFEST = "manifest.json"
PROVENANCE = "provenance.json"
BLOBS = "blobs/"
SUFFIX = ".kab"
TOTAL_LIMIT = 8 << 30
"""Bytes that a bundle may unpack to."""

_LEVEL = 12


Stream = tuple[Digest, Iterator[bytes]]
"""A blob: its digest, and its content in pieces. All pieces must be consumed."""


@dataclass(frozen=True)
class Bundle:
    """An open bundle: its manifest, and its blobs in the order of the file, once."""

    manifest: Manifest
    _streams: Iterator[Stream]

    def streams(self) -> Iterator[Stream]:
        """Every blob, verified after its last piece.

        Raises BundleError for a damaged or missing blob.
        """
        return self._streams

    def blobs(self) -> Iterator[tuple[Digest, bytes]]:
        """Every blob, verified, as a whole. Raises as ``streams``."""
        return ((digest, b"".join(chunks)) for digest, chunks in self._streams)


def write_bundle(path: Path, manifest: Manifest, get: Callable[[Digest], bytes]) -> int:
    """Write a bundle, as ``written`` does. Returns its size in bytes.

    ``get`` reads blobs. Raises ``OSError`` and whatever ``get`` raises.
    """
    with written(path) as file:
        packer = Packer(file, _LEVEL)
        packer.add(MANIFEST, manifest.to_json())
        packer.add(PROVENANCE, provenance(manifest))
        for hash_, size in sorted(manifest.blobs.items()):
            packer.add(f"{BLOBS}{hash_}", get(Digest(hash_, size)))
        return packer.finish()


@contextmanager
def open_bundle(
    path: Path, *, limit: int = TOTAL_LIMIT, named: Path | None = None
) -> Iterator[Bundle]:
    """Open a bundle. Raises BundleError, also while its blobs are read, and ``OSError``.

    Its errors name the file, as ``named`` if ``path`` is a copy: commands read several.
    """
    named = named or path
    try:
        with opened(path) as container:
            manifest = _read_manifest(container)
            total = sum(manifest.blobs.values())
            if total > limit:
                raise BundleError(
                    Reason.BUNDLE_TOO_LARGE,
                    f"it would unpack to {total:,} bytes",
                    hint=f"the limit is {limit:,}; --max_bytes=SIZE raises it",
                )
            yield Bundle(manifest, _read_blobs(container, manifest.blobs))
    except DamagedError as error:
        raise damaged(f"{named} is damaged or not a bundle: {error}") from None
    except BundleError as error:
        raise BundleError(error.reason, f"{named}: {error.message}", hint=error.hint) from None


def _read_manifest(container: Container) -> Manifest:
    manifest = Manifest.from_json(container.head(MANIFEST))
    if container.head(PROVENANCE) != provenance(manifest):
        raise damaged(f"its {PROVENANCE} contradicts its {MANIFEST}")
    return manifest


def _read_blobs(container: Container, sizes: Mapping[str, int]) -> Iterator[Stream]:
    last = ""
    seen = 0
    while (found := container.next()) is not None:
        name, size = found
        hash_ = name.removeprefix(BLOBS)
        if name == hash_ or hash_ not in sizes:
            raise damaged(f"it holds {name[:80]!r}, which its manifest does not name")
        if hash_ <= last:
            raise damaged(f"blob {hash_[:12]} is not in its place")
        if size != sizes[hash_]:
            raise damaged(f"blob {hash_[:12]} has {size} bytes, not {sizes[hash_]}")
        yield Digest(hash_, size), _hashed(container.chunks(size), hash_)
        last, seen = hash_, seen + 1
    if seen != len(sizes):
        raise damaged(f"{len(sizes) - seen} of {len(sizes)} blobs are missing")


def _hashed(chunks: Iterator[bytes], hash_: str) -> Iterator[bytes]:
    hasher = hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
        yield chunk
    if hasher.hexdigest() != hash_:
        raise BundleError(
            Reason.BUNDLE_DAMAGED,
            f"blob {hash_} was changed: its content has another digest",
            hint="do not trust this copy",
        )
