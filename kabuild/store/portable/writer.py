"""Exports results, with everything that they need, to one file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.canonical import parse_fields
from kabuild.base.container import Packer
from kabuild.base.errors import Reason, StoreError
from kabuild.base.fs import written
from kabuild.base.reading import read_plain
from kabuild.base.seal import Trust
from kabuild.model.digest import Digest
from kabuild.store.cas import BlobMissingError
from kabuild.store.contents import scan
from kabuild.store.portable.manifest import BLOBS, NAME, RESULTS, Manifest
from kabuild.store.result_closure import Get, Promise, QuietBlobs, read_promise
from kabuild.store.sealed_entry import MOST_BYTES, parts, trust_of
from kabuild.store.store import Store

_LEVEL = 9


@dataclass(frozen=True)
class Exported:
    """The content of an exported file. ``packed`` is its size, ``bytes`` its unpacked size."""

    results: int
    blobs: int
    bytes: int
    packed: int
    left_out: int


def export_results(store: Store, path: Path, keys: Iterable[str]) -> Exported:
    """Write the results of ``keys``, as ``written`` does, without noting a use.

    Results are left out if they are not sealed by this user, not hermetic, of unknown actions, or
    incomplete. Raises ``OSError`` for ``path``, StoreError.
    """
    get = QuietBlobs(store.root)
    entries: dict[str, bytes] = {}
    blobs: dict[str, Digest] = {}
    left_out = 0
    contents = scan(store.root)
    for key in sorted({*keys}):
        try:
            whole = read_plain(Path(contents.results[key].path), MOST_BYTES)
            entry, _ = parts(whole)
            promise = read_promise(key, entry, get)
        except (OSError, ValueError, LookupError):  # missing, damaged, or incomplete
            left_out += 1
            continue
        if trust_of(whole, key, store.seal) is not Trust.SEALED:
            left_out += 1
            continue
        needed = promise.outputs | promise.origin
        if not is_hermetic(key, promise, get) or not all(map(get.has, needed)):
            left_out += 1
            continue
        entries[key] = entry
        blobs.update((digest.hash, digest) for digest in needed)
    manifest = Manifest(
        {name: digest.size for name, digest in blobs.items()},
        {key: Digest.of(entry) for key, entry in entries.items()},
    )
    packed = _write(path, manifest, blobs, entries, get)
    return Exported(len(entries), len(blobs), manifest.size, packed, left_out)


def is_hermetic(key: str, promise: Promise, get: Get) -> bool:
    """Whether a result is known to come from a sandbox, according to its action."""
    action = next((digest for digest in promise.origin if digest.hash == key), None)
    if action is None:
        return False
    try:
        properties = dict(parse_fields(get(action))).get(10, b"")
        if isinstance(properties, int):
            return False
        pairs = [pair for _, pair in parse_fields(properties) if isinstance(pair, bytes)]
        return all(dict(parse_fields(pair)).get(1) != b"hermetic" for pair in pairs)
    except (OSError, LookupError, ValueError):  # the action is lost or damaged
        return False


def _write(
    path: Path,
    manifest: Manifest,
    blobs: dict[str, Digest],
    entries: dict[str, bytes],
    get: Get,
) -> int:
    with written(path) as file:
        packer = Packer(file, _LEVEL)
        packer.add(NAME, manifest.to_json())
        for name in sorted(blobs):
            packer.add(f"{BLOBS}{name}", _whole(blobs[name], get))
        for key in sorted(entries):
            packer.add(f"{RESULTS}{key}", entries[key])
        return packer.finish()


def _whole(digest: Digest, get: Get) -> bytes:
    """A verified blob. Raises StoreError."""
    try:
        data = get(digest)
    except LookupError:
        raise BlobMissingError(digest) from None
    if Digest.of(data) != digest:
        raise StoreError(
            Reason.BLOB_CORRUPT,
            f"blob {digest} is damaged; nothing was exported",
            hint="kabuild cache verify --remove",
        )
    return data
