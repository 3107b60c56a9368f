"""Layer 2a: declared, locked and installed toolchains, and their fingerprints.

Public names::

    declaration = Declaration.of(target)                    # of a [[toolchain]] target
    toolchain = Resolver(lock=..., trees=...)(declaration)  # a model.action.Toolchain

``${toolchain:python}`` is the root of the running Python environment (``bin/python3`` in
it), a distribution's toolchain is its package directory, a local or fetched one its
directory. ``fetch`` gets files, ``unpack`` makes trees of them, ``tree_store`` keeps those,
and ``tree_check`` finds changes in them. ``toolchains/README.md`` is for users.
"""

from kabuild.toolchain.declaration import (
    Declaration,
    Distribution,
    Environment,
    Fetched,
    LocalTree,
)
from kabuild.toolchain.fingerprint import FileDigest, hash_file, hash_record
from kabuild.toolchain.resolution import Resolver, resolve

__all__ = [
    "Declaration",
    "Distribution",
    "Environment",
    "Fetched",
    "FileDigest",
    "LocalTree",
    "Resolver",
    "hash_file",
    "hash_record",
    "resolve",
]
