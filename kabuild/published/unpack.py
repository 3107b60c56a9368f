"""A bundle's content, verified, in the store."""

from __future__ import annotations

from pathlib import Path

from kabuild.bundle.archive import open_bundle
from kabuild.bundle.manifest import Manifest
from kabuild.store import Store


def unpack(path: Path, store: Store, *, limit: int) -> Manifest:
    """Put every blob into the store, by its own digest; the manifest.

    No result of the bundle becomes an entry of the action cache: nothing of it is believed.
    Raises BundleError and ``OSError``.
    """
    with open_bundle(path, limit=limit) as bundle:
        for _, data in bundle.blobs():
            store.cas.put(data)
        return bundle.manifest
