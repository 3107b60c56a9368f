"""Pins that are files to fetch: their fingerprints, and their trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kabuild.base.canonical import canonical_json
from kabuild.base.errors import DriftError, Reason, ToolchainError
from kabuild.model.digest import Digest
from kabuild.toolchain.declaration import Declaration, Fetched
from kabuild.toolchain.fingerprint import SCHEMA
from kabuild.toolchain.lock import Lock, LockedFile, is_current
from kabuild.toolchain.machine import ANY, this_machine

Fetch = Callable[[Declaration, Fetched, tuple[LockedFile, ...], str], None]
"""Puts a tree into the store; ``fetch.Fetcher`` is one."""


@dataclass(frozen=True)
class FetchedTree:
    """The files of a pin on this machine, and the identity of their unpacked tree.

    The fingerprint is known before anything is fetched: the files' digests and the layout determine
    the tree.
    """

    files: tuple[LockedFile, ...]
    fingerprint: bytes

    @property
    def digest(self) -> str:
        """The name of the tree in the store."""
        return Digest.of(self.fingerprint).hash

    @property
    def size(self) -> int:
        """Bytes to fetch."""
        return sum(file.size for file in self.files)


def locked_tree(declaration: Declaration, pin: Fetched, lock: Lock) -> FetchedTree:
    """A pin's entry in the lock, for this machine.

    Raises DriftError(NOT_LOCKED) without an entry for this declaration, and
    ToolchainError(NO_TOOLCHAIN) without one for this machine.
    """
    entry = lock.find(declaration)
    label = declaration.label.short
    if entry is None or not is_current(entry, declaration):
        state = "has no entry in the lock" if entry is None else "changed since it was locked"
        raise DriftError(
            Reason.NOT_LOCKED,
            f"{label} {state}",
            position=declaration.position,
            hint=f"kabuild toolchain lock {label}",
        )
    machine = this_machine()
    files = entry.files.get(machine) or entry.files.get(ANY)
    if not files:
        raise ToolchainError(
            Reason.NO_TOOLCHAIN,
            f"{label} is not for this machine, which is {machine}",
            position=lock.position(declaration),
            hint=f"it is for: {', '.join(sorted(entry.files)) or 'none'}",
        )
    return FetchedTree(files, fingerprint(pin, files))


def fingerprint(pin: Fetched, files: tuple[LockedFile, ...]) -> bytes:
    """The digests of the files, and how they are unpacked; without names and indexes."""
    layout = pin.layout
    return canonical_json(
        {
            "schema": SCHEMA,
            "kind": pin.kind,
            "files": sorted(file.sha256 for file in files),
            "layout": [layout.strip_prefix, sorted(layout.paths), sorted(layout.links.items())],
        }
    )
