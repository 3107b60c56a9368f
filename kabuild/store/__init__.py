"""Layer 3a: blobs, results and file signatures on local disk. Imports base and model.

    with Store.open() as store:                 # $KABUILD_CACHE, else the user's cache
        digest = store.cas.put(b"...")          # content-addressed blobs
        store.actions.put(key, result)          # keys -> ActionResults
        store.index.digest("/path/to/source")   # hashed once, then only looked at

``merkle`` turns trees and commands into the REAPI messages that keys are made of; ``gc``
keeps the store below a size. Any number of processes may use one store; killing one at any
moment leaves it whole.
"""

from typing import TYPE_CHECKING

from kabuild.base.lazy import lazy_names

if TYPE_CHECKING:
    from kabuild.store.action_cache import ActionCache, DiskActionCache
    from kabuild.store.cas import BlobMissingError, Cas, DiskCas
    from kabuild.store.file_index import FileIndex
    from kabuild.store.paths import default_path
    from kabuild.store.store import Store

__all__ = [
    "ActionCache",
    "BlobMissingError",
    "Cas",
    "DiskActionCache",
    "DiskCas",
    "FileIndex",
    "Store",
    "default_path",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ActionCache": "action_cache",
        "BlobMissingError": "cas",
        "Cas": "cas",
        "DiskActionCache": "action_cache",
        "DiskCas": "cas",
        "FileIndex": "file_index",
        "Store": "store",
        "default_path": "paths",
    },
)
