"""A bundle's content, verified, in the store."""

from __future__ import annotations

from pathlib import Path

from kabuild.bundle.agreement import check_agreement
from kabuild.bundle.archive import open_bundle
from kabuild.bundle.candidates import check_candidates
from kabuild.bundle.claims import check_claims, check_machine, check_outputs
from kabuild.bundle.manifest import Manifest, Record, damaged
from kabuild.bundle.restore import restore
from kabuild.bundle.verdicts import check_handed_on
from kabuild.model.action import Action, Toolchain
from kabuild.model.digest import Digest
from kabuild.model.platform import CPU, Platform
from kabuild.store import Store
from kabuild.store.cas import BlobMissingError
from kabuild.store.merkle import Directory
from kabuild.store.trees import MOST_OF_A_BUNDLE, Trees


def unpack(path: Path, store: Store, *, limit: int, named: Path | None = None) -> Manifest:
    """Put every blob into the store, by its own digest; the manifest.

    No result of the bundle enters the action cache, since it is not trusted. Its input roots are
    read once here, so that later walks are known to end; records are checked against their actions.
    Errors call the file ``named``. Raises BundleError and ``OSError``.
    """
    named = named or path
    with open_bundle(path, limit=limit, named=named) as bundle:
        for _, chunks in bundle.streams():
            store.put_stream(chunks)
    trees = Trees(store.cas.get, most=MOST_OF_A_BUNDLE)
    roots: dict[Digest, Directory] = {}
    for record in bundle.manifest.records:
        try:
            roots[record.root] = trees.read(record.root)
        except (ValueError, BlobMissingError) as error:
            what = f"{named}: the inputs of {record.label} cannot be read: {error}"
            raise damaged(what) from None
    check_outputs(bundle.manifest)
    check_handed_on(bundle.manifest, roots)
    actions: dict[Digest, Action] = {}
    for record in bundle.manifest.records:
        action = actions[record.key] = action_of(record, store)
        check_claims(record, action, roots[record.root], store.cas.get)
        check_machine(record, action, bundle.manifest.platform, store.cas.get)
    check_candidates(bundle.manifest.records, roots, actions, store.cas.get)
    check_agreement(bundle.manifest.records, roots, actions, store.cas.get)
    return bundle.manifest


def action_of(record: Record, store: Store) -> Action:
    """The action of a record, for reading: with toolchains that nothing can run with.

    Raises BundleError if the record does not match its key.
    """
    return restore(record, store.cas.get, _any_toolchain, Platform(CPU)).prepared.action


def _any_toolchain(name: str) -> Toolchain:
    """Stands for any toolchain: its fingerprint is in the input root, and nothing runs."""
    return Toolchain(name=name, role="", fingerprint=b"", home="/")
