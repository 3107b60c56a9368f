"""Reads toolchains again and lists files that differ from their pins."""

from __future__ import annotations

import base64
import csv
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kabuild.base.errors import Reason, ToolchainError
from kabuild.toolchain.declaration import Declaration, Distribution, Environment
from kabuild.toolchain.distributions import (
    InstalledDistribution,
    closure,
    import_path,
    installed,
    normalise,
)
from kabuild.toolchain.inventory import fetched_tree
from kabuild.toolchain.resolution import Resolver

_MADE = (".pyc",)
"""Files that an installer makes itself; they are in no wheel."""


def differences(declaration: Declaration, resolver: Resolver) -> list[str] | None:
    """A line for each file that differs from its pin; None before the tree is fetched.

    ``resolver`` must read files in full. Raises DriftError for changed adopted trees and missing
    lock entries, ToolchainError for missing toolchains.
    """
    tree = fetched_tree(declaration, resolver)
    if tree is not None:
        if resolver.trees is None or not resolver.trees.has(tree.digest):
            return None
        try:
            return resolver.trees.differences(tree.digest)
        except (OSError, ValueError) as error:
            raise ToolchainError(
                Reason.NO_TOOLCHAIN,
                f"{declaration.label.short} cannot be read: {error}",
                position=declaration.position,
                hint=f"kabuild toolchain fetch --force {declaration.label.short}",
            ) from error
    replace(resolver, fetch=None)(declaration)
    pin = declaration.pin
    known = installed(import_path())
    found: Iterable[InstalledDistribution] = ()
    if isinstance(pin, Environment):
        found = closure(pin.distributions, known)
    elif isinstance(pin, Distribution):
        found = (known[normalise(pin.name)],)
    return [line for distribution in found for line in _record_differences(distribution)]


def _record_differences(distribution: InstalledDistribution) -> Iterator[str]:
    """The files of a RECORD that are missing or have a different SHA-256."""
    with distribution.record.open(newline="", encoding="utf-8") as record:
        for name, digest, _ in csv.reader(record):
            if not digest.startswith("sha256=") or name.endswith(_MADE):
                continue
            path = Path(distribution.site, name)
            try:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").digest()
            except OSError:
                yield f"{name}: missing"
                continue
            if base64.urlsafe_b64encode(found).rstrip(b"=").decode() != digest[7:]:
                yield f"{name}: changed"
