"""The file of a bundle: a tar compressed with zstd; equal content gives equal bytes.

First ``manifest.json``, then ``provenance.json``, then ``blobs/<sha256>`` in the order of their
hashes, each once. Times, owners and modes are constant. Anyone can read it with zstd and tar;
ours trusts nothing: a member is read only up to the size that the manifest states, and hashed
before it is used.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import zstandard

from kabuild.base.errors import BundleError, Reason
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
_WINDOW = 1 << 27
_HEAD_LIMIT = 256 << 20


@dataclass(frozen=True)
class Bundle:
    """An open bundle: its manifest, and its blobs in the order of the file, once."""

    manifest: Manifest
    _blobs: Iterator[tuple[Digest, bytes]]

    def blobs(self) -> Iterator[tuple[Digest, bytes]]:
        """Every blob, verified. Raises BundleError for one that is damaged or missing."""
        return self._blobs


def write_bundle(path: Path, manifest: Manifest, get: Callable[[Digest], bytes]) -> int:
    """Write a bundle beside its final name, then move it there. Returns its size in bytes.

    ``get`` has the blobs. Raises ``OSError`` and whatever ``get`` raises.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
            with (
                compressor.stream_writer(file, closefd=False) as stream,
                tarfile.open(fileobj=stream, mode="w|", format=tarfile.USTAR_FORMAT) as tar,
            ):
                _add(tar, MANIFEST, manifest.to_json())
                _add(tar, PROVENANCE, provenance(manifest))
                for hash_, size in sorted(manifest.blobs.items()):
                    _add(tar, f"{BLOBS}{hash_}", get(Digest(hash_, size)))
        size = temporary.stat().st_size
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return size


@contextmanager
def open_bundle(path: Path, *, limit: int = TOTAL_LIMIT) -> Iterator[Bundle]:
    """Open a bundle. Raises BundleError, also while its blobs are read, and ``OSError``.

    Its errors name the file: commands read several.
    """
    with path.open("rb") as file:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        try:
            with decompressor.stream_reader(file, read_across_frames=True) as stream:
                members = _Members(stream)
                manifest = _read_manifest(members)
                total = sum(manifest.blobs.values())
                if total > limit:
                    raise BundleError(
                        Reason.BUNDLE_TOO_LARGE,
                        f"it would unpack to {total:,} bytes",
                        hint=f"the limit is {limit:,}; --max_bytes=N raises it",
                    )
                yield Bundle(manifest, _read_blobs(members, manifest.blobs))
        except (tarfile.TarError, zstandard.ZstdError) as error:
            raise damaged(f"{path} is damaged or no bundle: {error}") from None
        except BundleError as error:
            raise BundleError(error.reason, f"{path}: {error.message}", hint=error.hint) from None


class _Members:
    """The members of a tar stream: plain files alone, each of a size that is asked for.

    ``tarfile`` itself reads the long names of a hostile archive into memory, whatever their
    length.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def next(self) -> tuple[str, int] | None:
        """Name and size of the next member; ``None`` at the end. Its content is read next."""
        header = self._read(tarfile.BLOCKSIZE)
        if not any(header):
            return None
        member = tarfile.TarInfo.frombuf(header, "ascii", "backslashreplace")
        if member.type != tarfile.REGTYPE or member.size < 0:
            raise damaged(f"{member.name[:80]!r} is no plain file")
        return member.name, member.size

    def content(self, size: int) -> bytes:
        """The content of the member that ``next`` named."""
        data = self._read(size)
        self._read(-size % tarfile.BLOCKSIZE)
        return data

    def finish(self) -> None:
        """Read what follows the last member: padding, and then nothing."""
        padding = self._stream.read(tarfile.RECORDSIZE)
        if any(padding) or self._stream.read(1):
            raise damaged("it goes on after its end")

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._stream.read(min(size - len(parts), 1 << 20))
            if not part:
                raise damaged("it ends early")
            parts += part
        return bytes(parts)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    tar.addfile(entry, io.BytesIO(data))


def _read_manifest(members: _Members) -> Manifest:
    manifest = Manifest.from_json(_head(members, MANIFEST))
    if _head(members, PROVENANCE) != provenance(manifest):
        raise damaged(f"its {PROVENANCE} does not say what its {MANIFEST} says")
    return manifest


def _head(members: _Members, name: str) -> bytes:
    found = members.next()
    if found is None or found[0] != name:
        raise damaged(f"it has no {name} where one belongs")
    if found[1] > _HEAD_LIMIT:
        raise damaged(f"its {name} has {found[1]:,} bytes")
    return members.content(found[1])


def _read_blobs(members: _Members, sizes: Mapping[str, int]) -> Iterator[tuple[Digest, bytes]]:
    last = ""
    seen = 0
    while (found := members.next()) is not None:
        name, size = found
        hash_ = name.removeprefix(BLOBS)
        if name == hash_ or hash_ not in sizes:
            raise damaged(f"it holds {name[:80]!r}, which its manifest does not name")
        if hash_ <= last:
            raise damaged(f"blob {hash_[:12]} is not in its place")
        if size != sizes[hash_]:
            raise damaged(f"blob {hash_[:12]} has {size} bytes, not {sizes[hash_]}")
        data = members.content(size)
        if hashlib.sha256(data).hexdigest() != hash_:
            raise BundleError(
                Reason.BUNDLE_DAMAGED,
                f"blob {hash_} was changed: its content has another digest",
                hint="do not trust this copy",
            )
        last, seen = hash_, seen + 1
        yield Digest(hash_, size), data
    if seen != len(sizes):
        raise damaged(f"{len(sizes) - seen} of {len(sizes)} blobs are missing")
    members.finish()
