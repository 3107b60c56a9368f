"""A bundle's content, verified, in the store."""

from __future__ import annotations

from pathlib import Path

from kabuild.bundle.archive import open_bundle
from kabuild.bundle.manifest import Manifest, damaged
from kabuild.bundle.verdicts import check_handed_on
from kabuild.model.digest import Digest
from kabuild.store import Store
from kabuild.store.cas import BlobMissingError
from kabuild.store.merkle import Directory
from kabuild.store.trees import MOST_OF_A_BUNDLE, Trees


def unpack(path: Path, store: Store, *, limit: int) -> Manifest:
    """Put every blob into the store, by its own digest; the manifest.

    No result of the bundle enters the action cache, since it is not trusted. Its input roots are
    read once here, so that later walks are known to end. Raises BundleError and ``OSError``.
    """
    with open_bundle(path, limit=limit) as bundle:
        for _, chunks in bundle.streams():
            store.put_stream(chunks)
    trees = Trees(store.cas.get, most=MOST_OF_A_BUNDLE)
    roots: dict[Digest, Directory] = {}
    for record in bundle.manifest.records:
        try:
            roots[record.root] = trees.read(record.root)
        except (ValueError, BlobMissingError) as error:
            what = f"{path}: the inputs of {record.label} cannot be read: {error}"
            raise damaged(what) from None
    check_handed_on(bundle.manifest, roots)
    return bundle.manifest
