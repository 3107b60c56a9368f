"""Writes entries of the lock: looks requirements up in indexes, and adopts trees."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kabuild.base.errors import KabuildError, Reason, ToolchainError
from kabuild.toolchain.adopted import list_tree, remember_listing
from kabuild.toolchain.completeness import require_whole
from kabuild.toolchain.declaration import (
    Declaration,
    Distribution,
    Environment,
    Fetched,
    LocalTree,
)
from kabuild.toolchain.fetch.fetcher import Sources
from kabuild.toolchain.fingerprint import FileDigest, hash_record
from kabuild.toolchain.installed import find_distribution, find_environment, versions
from kabuild.toolchain.lock import LockedFile, LockEntry, declared

PARALLEL = 4
"""Requirements that are looked up at a time."""


def lock_entry(
    declaration: Declaration, sources: Sources, listings: Path, file_digest: FileDigest
) -> LockEntry:
    """The entry for a declaration, from the indexes and this machine as they are now.

    Raises ToolchainError, at the declaration's position.
    """
    pin = declaration.pin
    kind, said = declaration.kind, declared(declaration)
    if isinstance(pin, Environment):
        find_environment(declaration, pin, hash_record)
        return LockEntry(kind, said, installed=versions(pin))
    if isinstance(pin, Distribution):
        find_distribution(declaration, pin, hash_record)
        return LockEntry(kind, said, installed=versions(pin))
    if isinstance(pin, LocalTree):
        return adopt(declaration, pin, listings, file_digest)
    return LockEntry(kind, said, files=_files(declaration, pin, sources))


def adopt(
    declaration: Declaration, tree: LocalTree, listings: Path, file_digest: FileDigest
) -> LockEntry:
    """The entry of an installed tree that replaces the declared one.

    Its listing is kept in ``listings``, to name later changes. Raises ToolchainError.
    """
    listing = list_tree(declaration, tree, file_digest)
    require_whole(declaration, Path(tree.home), tree.paths)
    if listing == b"[]\n":
        raise ToolchainError(
            Reason.NO_TOOLCHAIN, f"{tree.home} holds no files", position=declaration.position
        )
    try:
        digest = remember_listing(listings, listing)
    except OSError as error:
        raise ToolchainError(
            Reason.STORE_UNWRITABLE, f"{listings} cannot be written: {error.strerror}"
        ) from error
    return LockEntry("local", declared(declaration), home=tree.home, paths=tree.paths, tree=digest)


def _files(
    declaration: Declaration, pin: Fetched, sources: Sources
) -> dict[str, tuple[LockedFile, ...]]:
    """The files of all requirements, by machine."""
    source = sources.of(pin)
    wanted = [(machine, item) for machine in pin.machines for item in pin.requirements]
    try:
        # One request per requirement first: its answer serves the other machines.
        with ThreadPoolExecutor(PARALLEL) as pool:
            first = [*pool.map(lambda item: source.find(item, pin.machines[0]), pin.requirements)]
        found = dict(
            zip(((pin.machines[0], item) for item in pin.requirements), first, strict=True)
        )
        for machine, item in wanted:
            if (machine, item) not in found:
                found[machine, item] = source.find(item, machine)
    except KabuildError as error:
        error.position = error.position or declaration.position
        raise
    return {
        machine: tuple(found[machine, item] for item in pin.requirements)
        for machine in pin.machines
    }
