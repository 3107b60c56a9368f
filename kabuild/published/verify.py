"""Checks a bundle without running anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kabuild.bundle.manifest import Manifest
from kabuild.bundle.verdicts import left_out, verdicts
from kabuild.model.gate import Gates
from kabuild.published.origin import Origins, origins
from kabuild.published.unpack import action_of, unpack
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


def verify_file(
    path: Path, store: Store, known: Gates, *, limit: int, named: Path | None = None
) -> Verified:
    """Check every blob, every action against its key, and every record against its action.

    ``known`` are the gates that rules declare here; errors call the file ``named``.

    Raises BundleError for a damaged or changed bundle, and ``OSError``.
    """
    manifest = unpack(path, store, limit=limit, named=named)
    commands: Counter[str] = Counter()
    for record in manifest.records:
        commands[" ".join(action_of(record, store).argv[:2])] += 1
    return Verified(
        manifest,
        verdicts(manifest.records, store.cas.get),
        left_out(manifest, store.cas.get, known),
        dict(commands.most_common()),
        origins(manifest.records, store.cas.get),
    )
