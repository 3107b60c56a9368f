"""Taking over results from a file that anyone may have made."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import zstandard

from kabuild.base.errors import BundleError, Reason
from kabuild.base.sizes import show_size
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult
from kabuild.store.action_cache import decode
from kabuild.store.portable.manifest import (
    BLOBS,
    LARGEST_MANIFEST,
    NAME,
    RESULTS,
    Manifest,
    damaged,
)
from kabuild.store.portable.writer import is_hermetic
from kabuild.store.promises import QuietBlobs, read_promise
from kabuild.store.store import Store

_CHUNK = 1 << 20
_WINDOW = 1 << 27
"""Bytes of memory that unpacking may ask for."""


@dataclass(frozen=True)
class Imported:
    """What an import came to.

    Attributes:
        results: new ones.
        known: those that the store had, alike.
        disputed: hashes of keys of which the store has another result, which stays.
        bytes: of blobs that were new.
    """

    results: int
    known: int
    disputed: tuple[str, ...]
    bytes: int


def import_results(store: Store, path: Path, *, limit: int) -> Imported:
    """Check the whole file, then take over its results.

    Blobs are stored as they come, each under the digest that it really has; a result is
    stored when all of the file was good. Raises BundleError for a file that is damaged, lies
    or would unpack to more than ``limit`` bytes; StoreError; ``OSError`` for ``path``.
    """
    with _opened(path) as tar:
        manifest = _read_manifest(tar)
        if manifest.size > limit:
            raise BundleError(
                Reason.BUNDLE_TOO_LARGE,
                f"{path.name} would unpack to {show_size(manifest.size)}; "
                f"the limit is {show_size(limit)}",
                hint="--max_bytes=SIZE raises it",
            )
        before = store.added.bytes
        entries = _unpack(tar, manifest, store)
    results = {key: _checked(key, entry, manifest, store) for key, entry in entries.items()}
    known, disputed = 0, []
    for key, result in results.items():
        ours = store.actions.get(Digest(key, 0))
        if ours is None:
            store.actions.put(Digest(key, 0), result)
        elif _alike(ours, result):
            known += 1
        else:
            disputed.append(key)
    new = len(results) - known - len(disputed)
    return Imported(new, known, tuple(disputed), store.added.bytes - before)


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    with path.open("rb") as file:
        try:
            with (
                decompressor.stream_reader(file, read_across_frames=False) as stream,
                tarfile.open(fileobj=stream, mode="r|") as tar,
            ):
                yield tar
        except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
            raise damaged(f"{path.name} cannot be unpacked: {error}") from None


def _read_manifest(tar: tarfile.TarFile) -> Manifest:
    entry = tar.next()
    if entry is None or entry.name != NAME or not entry.isreg():
        raise damaged(f"it does not begin with {NAME}")
    if entry.size > LARGEST_MANIFEST:
        raise damaged(f"its manifest has {entry.size} bytes")
    data = b"".join(_chunks(tar, entry))
    return Manifest.from_json(data)


def _unpack(tar: tarfile.TarFile, manifest: Manifest, store: Store) -> dict[str, bytes]:
    """Store all blobs; the entries of results, checked. The order is that of the manifest."""
    wanted = [f"{BLOBS}{name}" for name in sorted(manifest.blobs)]
    wanted += [f"{RESULTS}{key}" for key in sorted(manifest.results)]
    entries: dict[str, bytes] = {}
    for name in wanted:
        part = tar.next()
        if part is None:
            raise damaged(f"{name} and what follows is missing")
        if part.name != name or not part.isreg():
            raise damaged(f"it holds {part.name!r} where {name} should be")
        hash_ = name.partition("/")[2]
        if name.startswith(BLOBS):
            _store_blob(tar, part, Digest(hash_, manifest.blobs[hash_]), store)
        else:
            entries[hash_] = _entry(tar, part, manifest.results[hash_])
    if (more := tar.next()) is not None:
        raise damaged(f"it holds {more.name!r}, which its manifest does not name")
    return entries


def _store_blob(tar: tarfile.TarFile, part: tarfile.TarInfo, digest: Digest, store: Store) -> None:
    if part.size != digest.size:
        raise damaged(f"blob {digest.hash} has {part.size} bytes, not {digest.size}")
    hasher = hashlib.sha256()
    temporary = store.scratch.path("import")
    try:
        with temporary.open("xb") as file:
            for chunk in _chunks(tar, part):
                hasher.update(chunk)
                file.write(chunk)
        if hasher.hexdigest() != digest.hash:
            raise damaged(f"blob {digest.hash} was changed: its content has another digest")
        store.cas.put_file(temporary, move=True)
    finally:
        temporary.unlink(missing_ok=True)


def _entry(tar: tarfile.TarFile, part: tarfile.TarInfo, digest: Digest) -> bytes:
    if part.size != digest.size:
        raise damaged(f"{part.name} has {part.size} bytes, not {digest.size}")
    data = b"".join(_chunks(tar, part))
    if Digest.of(data) != digest:
        raise damaged(f"{part.name} was changed: its content has another digest")
    return data


def _checked(key: str, entry: bytes, manifest: Manifest, store: Store) -> ActionResult:
    """The result in an entry: hermetic, whole, and with outputs below its root."""
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


def _alike(one: ActionResult, other: ActionResult) -> bool:
    return replace(one, seconds=0.0) == replace(other, seconds=0.0)


def _chunks(tar: tarfile.TarFile, part: tarfile.TarInfo) -> Iterator[bytes]:
    """The bytes of one part, all of them."""
    content: IO[bytes] | None = tar.extractfile(part)
    left = part.size
    while content and left and (chunk := content.read(min(left, _CHUNK))):
        left -= len(chunk)
        yield chunk
    if left:
        raise damaged(f"{part.name} ends early")
