"""Layer 2a: toolchains: what is declared, what is installed, and its fingerprint.

Public names::

    declaration = Declaration.of(target)                    # of a [[toolchain]] target
    toolchain = resolve(declaration, name="zig")           # a model.toolchain.Toolchain

``${toolchain:python}`` is the root of the running Python environment (``bin/python3`` in
it), a distribution's toolchain is its package directory, a local one its directory.
"""

from kabuild.toolchain.declaration import Declaration, Distribution, Environment, LocalTree
from kabuild.toolchain.fingerprint import FileDigest, hash_file, hash_record
from kabuild.toolchain.resolution import resolve

__all__ = [
    "Declaration",
    "Distribution",
    "Environment",
    "FileDigest",
    "LocalTree",
    "hash_file",
    "hash_record",
    "resolve",
]
