"""Resolves declared and locked toolchains to those of this machine."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kabuild.base.errors import DriftError, Reason, ToolchainError
from kabuild.model.action import Toolchain
from kabuild.model.digest import Digest
from kabuild.toolchain.adopted import drift, find_tree, list_tree, remember_listing
from kabuild.toolchain.aliases import with_aliases
from kabuild.toolchain.declaration import (
    Declaration,
    Distribution,
    Environment,
    Fetched,
    LocalTree,
)
from kabuild.toolchain.fetched import Fetch, locked_tree
from kabuild.toolchain.fingerprint import FileDigest, hash_file, hash_record, tree_fingerprint
from kabuild.toolchain.installed import Found, find_distribution, find_environment, versions
from kabuild.toolchain.lock import Lock, LockEntry, is_current
from kabuild.toolchain.tree_check import Consulted, TreeCheck, nobody
from kabuild.toolchain.tree_store import TreeStore

ADOPTED = "adopted"
"""Directory of a tree store with the listings of adopted trees."""


_ATTEMPTS = 3
"""Attempts to fetch a tree that other processes keep removing."""


def no_lock() -> Lock:
    """A lock without entries."""
    return Lock()


@dataclass(frozen=True)
class Resolver:
    """Finds declared toolchains on this machine and fingerprints them.

    Attributes:
        file_digest, record_digest: read files in full; a caller may wrap them to remember
            digests by signature (size, times, inode), so that a second run reads nothing.
        lock: returns the lock, which is read on demand.
        trees: the unpacked toolchains; None without a store.
        fetch: gets missing trees; None if fetching is forbidden.
        locked: refuse toolchains that are not in the lock, or differ from it.
        has_secret: whether the environment has a secret.
        unfetched: accept a missing tree by its pin, since nothing will run with it.
        consulted: called with files of ``trees`` that an answer depends on; other files go through
            ``file_digest``.
    """

    file_digest: FileDigest = hash_file
    record_digest: FileDigest = hash_record
    lock: Callable[[], Lock] = no_lock
    trees: TreeStore | None = None
    fetch: Fetch | None = None
    locked: bool = False
    consulted: Consulted = nobody
    has_secret: Callable[[str], bool] = lambda _: True
    unfetched: bool = False

    def __call__(
        self,
        declaration: Declaration,
        *,
        name: str = "",
        fetch: bool = True,
        secrets: tuple[str, ...] = (),
    ) -> Toolchain:
        """The toolchain; ``name`` is what ``${toolchain:NAME}`` will say, by default its own.

        Without ``fetch`` only one that is here already. What runs with it needs ``secrets``:
        where one is missing nothing is fetched, and the pin alone says what the toolchain is, so
        that cached results are found, and actions that have to run say what they lack.
        Raises ToolchainError(NO_TOOLCHAIN, FETCH_FAILED) for what is missing and DriftError for
        files that differ from the pin.
        """
        if not all(map(self.has_secret, secrets)):
            return replace(self, fetch=None, unfetched=True)(declaration, name=name, fetch=fetch)
        if self.fetch and not fetch:
            return replace(self, fetch=None)(declaration, name=name)
        fingerprint, home, mounts = self._find(declaration)
        return Toolchain(
            name=name or declaration.label.name,
            role=declaration.role,
            fingerprint=fingerprint,
            home=home,
            mounts=mounts,
        )

    def adoption(self, declaration: Declaration) -> tuple[LocalTree, LockEntry | None] | None:
        """The adopted tree of a toolchain, with its lock entry; None for others."""
        pin = declaration.pin
        if not isinstance(pin, LocalTree | Fetched):
            return None
        entry = self.lock().find(declaration)
        if entry and entry.kind == "local" and is_current(entry, declaration):
            return LocalTree(entry.home, entry.paths), entry
        return (pin, None) if isinstance(pin, LocalTree) else None

    def _find(self, declaration: Declaration) -> Found:
        pin = declaration.pin
        if isinstance(pin, Environment):
            self._check_versions(declaration, pin)
            return find_environment(declaration, pin, self.record_digest)
        if isinstance(pin, Distribution):
            self._check_versions(declaration, pin)
            return find_distribution(declaration, pin, self.record_digest)
        if adoption := self.adoption(declaration):
            return self._adopted(declaration, *adoption)
        assert isinstance(pin, Fetched)
        return self._fetched(declaration, pin)

    def _adopted(self, declaration: Declaration, pin: LocalTree, entry: LockEntry | None) -> Found:
        if entry is None:
            if self.locked:
                raise self._unlocked(declaration)
            return find_tree(declaration, pin, self.file_digest)
        position = self.lock().position(declaration)
        listing = list_tree(declaration, pin, self.file_digest, position)
        listings = self.trees.root / ADOPTED if self.trees else Path(ADOPTED)
        if Digest.of(listing).hash != entry.tree:
            raise drift(declaration, position, listing, listings / f"{entry.tree}.json", pin)
        if self.trees:
            with suppress(OSError):  # without it, later differences cannot be named
                remember_listing(listings, listing)
        mounts = with_aliases(pin.home)
        return tree_fingerprint(listing), mounts[0], mounts

    def _fetched(self, declaration: Declaration, pin: Fetched) -> Found:
        wanted = locked_tree(declaration, pin, self.lock())
        trees = self.trees
        here = trees is not None and trees.use(wanted.digest)
        for _ in range(_ATTEMPTS if self.fetch else 0):
            if not here and trees and self.fetch:
                self.fetch(declaration, pin, wanted.files, wanted.digest)
                here = trees.use(wanted.digest)
        if trees and not here and self.unfetched:
            home = str(trees.tree(wanted.digest))
            return wanted.fingerprint, home, (home,)
        if trees is None or not here:
            why = "cannot be kept there" if self.fetch else "nothing may be fetched"
            is_foreign = trees is not None and trees.is_unsealed(wanted.digest)
            state = "in the store, but was not fetched by you" if is_foreign else "not in the store"
            raise ToolchainError(
                Reason.NO_TOOLCHAIN,
                f"{declaration.label.short} is {state}, and {why}",
                position=declaration.position,
                hint=f"kabuild toolchain fetch {declaration.label.short}",
            )
        check = TreeCheck(trees, self.consulted)
        check.require(declaration, self.lock().position(declaration), wanted.digest)
        home = str(trees.tree(wanted.digest))
        return wanted.fingerprint, home, (home,)

    def _check_versions(self, declaration: Declaration, pin: Environment | Distribution) -> None:
        """With ``locked``, check that installed versions are those in the lock."""
        if not self.locked:
            return
        entry = self.lock().find(declaration)
        if entry is None or not is_current(entry, declaration):
            raise self._unlocked(declaration)
        found = versions(pin)
        if found != entry.installed:
            raise DriftError(
                Reason.TOOLCHAIN_DRIFT,
                f"{declaration.label.short} differs from the lock",
                position=self.lock().position(declaration),
                hint=f"locked:    {' '.join(entry.installed)}\ninstalled: {' '.join(found)}",
            )

    def _unlocked(self, declaration: Declaration) -> DriftError:
        label, pin = declaration.label.short, declaration.pin
        command = (
            f"pin {label} --from {shlex.quote(pin.home)}"
            if isinstance(pin, LocalTree)
            else f"lock {label}"
        )
        entry = self.lock().find(declaration)
        state = "has no entry in the lock" if entry is None else "changed since it was locked"
        return DriftError(
            Reason.NOT_LOCKED,
            f"{label} {state}, and --locked forbids that",
            position=declaration.position,
            hint=f"kabuild toolchain {command}",
        )


def resolve(
    declaration: Declaration,
    *,
    name: str = "",
    fetch: bool = True,
    secrets: tuple[str, ...] = (),
    file_digest: FileDigest = hash_file,
    record_digest: FileDigest = hash_record,
) -> Toolchain:
    """Find installed toolchains, without lock and store. As ``Resolver``."""
    return Resolver(file_digest, record_digest)(
        declaration, name=name, fetch=fetch, secrets=secrets
    )
