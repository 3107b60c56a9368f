"""Checking a bundle without running anything of it."""

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
    """What a bundle says, and that it fits together.

    Attributes:
        verdicts: how many gates ended with each, by gate.
        left_out: the tasks of which it has no verdict, though nothing stopped that gate, by gate.
        commands: the programs that its actions run, and how often.
        origins: whose files went in.
    """

    manifest: Manifest
    verdicts: Mapping[str, Mapping[str, int]]
    left_out: Mapping[str, Sequence[str]]
    commands: Mapping[str, int]
    origins: Origins


def verify_file(path: Path, store: Store, known: Gates, *, limit: int) -> Verified:
    """Check every blob, and that every action is what its key says.

    ``known`` are the gates that rules declare here.

    Raises BundleError for what is damaged or changed, ``OSError``.
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
    """What a key holds of a toolchain is in the input root; here nothing runs."""
    return Toolchain(name=name, role="", fingerprint=b"", home="/")
