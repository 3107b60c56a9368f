"""Checks a bundle without running anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kabuild.bundle.manifest import Manifest
from kabuild.bundle.restore import restore
from kabuild.bundle.verdicts import left_out, verdicts
from kabuild.model.action import Toolchain
from kabuild.model.gate import Gates
from kabuild.model.platform import Platform
from kabuild.published.origin import Origins, origins
from kabuild.published.unpack import unpack
from kabuild.store import Store


@dataclass(frozen=True)
class Verified:
    """The content of an intact bundle.

    Attributes:
        verdicts: how many gates ended with each, by gate.
        left_out: by gate, the tasks without a verdict although nothing stopped the gate.
        commands: the programs of its actions, with counts.
        origins: where its input files come from.
    """

    manifest: Manifest
    verdicts: Mapping[str, Mapping[str, int]]
    left_out: Mapping[str, Sequence[str]]
    commands: Mapping[str, int]
    origins: Origins


def verify_file(path: Path, store: Store, known: Gates, *, limit: int) -> Verified:
    """Check every blob, and every action against its key.

    ``known`` are the gates that rules declare here.

    Raises BundleError for a damaged or changed bundle, and ``OSError``.
    """
    manifest = unpack(path, store, limit=limit)
    commands: Counter[str] = Counter()
    for record in manifest.records:
        action = restore(record, store.cas.get, _any_toolchain, Platform("cpu")).prepared.action
        commands[" ".join(action.argv[:2])] += 1
    return Verified(
        manifest,
        verdicts(manifest.records, store.cas.get),
        left_out(manifest, store.cas.get, known),
        dict(commands.most_common()),
        origins(manifest.records, store.cas.get),
    )


def _any_toolchain(name: str) -> Toolchain:
    """Stands for any toolchain: its fingerprint is in the input root, and nothing runs."""
    return Toolchain(name=name, role="", fingerprint=b"", home="/")
