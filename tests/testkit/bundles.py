"""Bundles as an attacker would make them: unpacked, changed, packed again."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import zstandard

from kabuild.base.errors import BundleError
from kabuild.bundle.manifest import Manifest, Record
from kabuild.bundle.provenance import provenance
from kabuild.model.digest import Digest

Members = dict[str, bytes]

_NOTHING = Digest.of(b"")
RECORD = Record(
    label="//a:b",
    task="//a:b",
    gate="correctness",
    mnemonic="Correctness",
    key=_NOTHING,
    command=_NOTHING,
    root=_NOTHING,
    toolchains=(),
    preload=(),
    nestable=False,
    lease="",
    timed=False,
    cpus=1,
    replayable=True,
    files=(),
)
"""What a bundle says of one action: a gate without inputs that made nothing."""


def read_members(bundle: Path) -> Members:
    """All members in order; what zstd and tar alone make of it."""
    data = zstandard.ZstdDecompressor().stream_reader(bundle.read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {entry.name: _content(tar, entry) for entry in tar}


def write_members(path: Path, members: Members, extra: tuple[tarfile.TarInfo, ...] = ()) -> Path:
    """A bundle of these members, and of bare headers behind them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for entry in extra:
            tar.addfile(entry)
    path.write_bytes(zstandard.ZstdCompressor().compress(buffer.getvalue()))
    return path


def with_manifest(
    bundle: Path, target: Path, edit: Callable[[dict[str, Any]], None], blobs: Members | None = None
) -> Path:
    """The bundle with another manifest, consistent provenance, and more blobs."""
    members = read_members(bundle)
    manifest = json.loads(members["manifest.json"])
    edit(manifest)
    head = {"manifest.json": json.dumps(manifest).encode(), "provenance.json": b""}
    with suppress(BundleError):  # what cannot be read needs no provenance
        head["provenance.json"] = provenance(Manifest.from_json(head["manifest.json"]))
    rest = {name: data for name, data in members.items() if name.startswith("blobs/")}
    return write_members(target, head | dict(sorted((rest | (blobs or {})).items())))


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(entry)
    assert file is not None
    return file.read()
