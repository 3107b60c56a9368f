"""Imports results from an untrusted file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kabuild.base.clock import SystemClock
from kabuild.base.container import Container, DamagedError, opened
from kabuild.base.errors import BundleError, Reason
from kabuild.base.sizes import show_size
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult
from kabuild.store.action_cache import decode
from kabuild.store.portable.manifest import (
    BLOBS,
    NAME,
    RESULTS,
    Manifest,
    damaged,
)
from kabuild.store.portable.writer import is_hermetic
from kabuild.store.result_closure import QuietBlobs, read_promise
from kabuild.store.storable import storable
from kabuild.store.store import Store

_FREE_FILES, _FILES_PER_PART = 10_000, 100
"""The most files in results: a base, plus so many for each blob and each result."""


@dataclass(frozen=True)
class Imported:
    """The result of an import.

    Attributes:
        results: new ones.
        known: equal ones that the store had.
        disputed: hashes of keys with another result in the store, which stays.
        bytes: of blobs that were new.
    """

    results: int
    known: int
    disputed: tuple[str, ...]
    bytes: int


def import_results(store: Store, path: Path, *, limit: int) -> Imported:
    """Check the whole file, then import its results.

    Blobs are stored as they come, each under its actual digest; results are stored after the whole
    file was checked. Raises BundleError for a damaged or false file, or one that would unpack to
    more than ``limit`` bytes; StoreError; ``OSError`` for ``path``.
    """
    try:
        with opened(path) as container:
            manifest = Manifest.from_json(container.head(NAME))
            if manifest.size > limit:
                raise BundleError(
                    Reason.BUNDLE_TOO_LARGE,
                    f"{path.name} would unpack to {show_size(manifest.size)}; "
                    f"the limit is {show_size(limit)}",
                    hint="--max_bytes=SIZE raises it",
                )
            before = store.added.bytes
            entries = _unpack(container, manifest, store)
    except DamagedError as error:
        raise damaged(f"{path.name} cannot be unpacked: {error}") from None
    budget = _FREE_FILES + _FILES_PER_PART * (len(manifest.blobs) + len(manifest.results))
    ended = SystemClock().wall()
    for key, entry in entries.items():
        result = _checked(key, entry, manifest, store)
        budget -= len(result.files)
        if budget < 0:
            raise damaged("its results name the same files too often")
        try:
            entries[key] = storable(result, store.cas, ended=ended)
        except ValueError as error:
            raise damaged(f"result {key} cannot be stored: {error}") from None
    known, disputed = 0, []
    for key, entry in entries.items():
        ours = store.actions.get(Digest(key, 0))
        if ours is None:
            store.actions.put_message(Digest(key, 0), entry)
        elif _alike(ours, decode(entry, store.cas)):
            known += 1
        else:
            disputed.append(key)
    new = len(entries) - known - len(disputed)
    return Imported(new, known, tuple(disputed), store.added.bytes - before)


def _unpack(container: Container, manifest: Manifest, store: Store) -> dict[str, bytes]:
    """Store all blobs; the entries of results, checked. The order is that of the manifest."""
    entries: dict[str, bytes] = {}
    for hash_ in sorted(manifest.blobs):
        digest = Digest(hash_, manifest.blobs[hash_])
        store.put_stream(_content(container, f"{BLOBS}{hash_}", digest))
    for key in sorted(manifest.results):
        entries[key] = b"".join(_content(container, f"{RESULTS}{key}", manifest.results[key]))
    if (more := container.next()) is not None:
        raise damaged(f"it holds {more[0][:80]!r}, which its manifest does not name")
    return entries


def _content(container: Container, name: str, digest: Digest) -> Iterator[bytes]:
    """The next member, which must be ``name``, in pieces; verified after the last one."""
    part = container.next()
    if part is None:
        raise damaged(f"{name} and what follows is missing")
    if part[0] != name:
        raise damaged(f"it holds {part[0][:80]!r} where {name} should be")
    if part[1] != digest.size:
        raise damaged(f"{name} has {part[1]} bytes, not {digest.size}")
    hasher = hashlib.sha256()
    for chunk in container.chunks(digest.size):
        hasher.update(chunk)
        yield chunk
    if hasher.hexdigest() != digest.hash:
        raise damaged(f"{name} was changed: its content has another digest")


def _checked(key: str, entry: bytes, manifest: Manifest, store: Store) -> ActionResult:
    """The result in an entry, which must be hermetic, complete, and have outputs below its root."""
    get = QuietBlobs(store.root)
    try:
        promise = read_promise(key, entry, get)
        result = decode(entry, store.cas)
    except (ValueError, LookupError) as error:
        raise damaged(f"result {key} cannot be understood: {error}") from None
    for digest in promise.outputs | promise.origin:
        if manifest.blobs.get(digest.hash) != digest.size:
            raise damaged(f"result {key} needs blob {digest}, which is not in the file")
    if result is None or not is_hermetic(key, promise, get):
        raise damaged(f"result {key} is not from a sandbox")
    return result


def _alike(one: ActionResult, other: ActionResult | None) -> bool:
    return other is not None and replace(one, seconds=0.0) == replace(other, seconds=0.0)
