"""The declared toolchains of a workspace, as the commands about them share them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import click

from kabuild.base.errors import KabuildError, Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.cli.streams import in_colour
from kabuild.loading import Loader, find_workspace, load_workspace
from kabuild.loading.toolchain_rule import TOOLCHAIN
from kabuild.model.label import Label
from kabuild.provision import declarations, declarations_elsewhere, is_usual, provision
from kabuild.store import Store
from kabuild.store.paths import TOOLCHAINS as DIRECTORY
from kabuild.toolchain import Declaration, Resolver, hash_file
from kabuild.toolchain.declaration import names_of
from kabuild.toolchain.lock import LOCK_FILE, Lock, LockEntry, read_lock, write_lock
from kabuild.toolchain.resolution import ADOPTED
from kabuild.toolchain.tree_store import TreeStore


@dataclass(frozen=True)
class ToolchainContext:
    """The toolchains of one workspace.

    Attributes:
        declarations: those in ``//toolchains/...``, then those of other packages.
        resolver: finds them, with the store's memory of files; it fetches nothing.
        broken: the packages outside of ``//toolchains`` that cannot be loaded.
    """

    root: Path
    loader: Loader
    declarations: tuple[Declaration, ...]
    trees: TreeStore
    resolver: Resolver
    broken: frozenset[str] = frozenset()

    @property
    def listings(self) -> Path:
        """Directory with the listings of adopted trees."""
        return self.trees.root / ADOPTED

    @property
    def rereading(self) -> Resolver:
        """A resolver without memory: it reads all files."""
        return replace(self.resolver, file_digest=hash_file)

    def find(self, name: str) -> Declaration:
        """The toolchain of a label, or of a name. Raises UsageError.

        A name prefers ``//toolchains/...`` to other packages.
        """
        if "/" in name or name.startswith(":"):
            label = Label.parse(name)
            found = [item for item in self.declarations if item.label == label]
            found = found or [self._of(label)]
        else:
            named = [item for item in self.declarations if item.label.name == name]
            found = [item for item in named if is_usual(item.label.package)] or named
        if len(found) == 1:
            return found[0]
        names = [item.label.short for item in found]
        known = sorted(names_of(self.declarations).values())
        raise UsageError(
            Reason.UNKNOWN_TARGET,
            f"'{name}' names {'several toolchains' if found else 'no toolchain'}",
            hint=", ".join(names) or suggest(name, known) or f"known: {', '.join(known)}",
        )

    def _of(self, label: Label) -> Declaration:
        target = self.loader.target(label)
        if target.kind != TOOLCHAIN.kind:
            raise UsageError(
                Reason.UNKNOWN_TARGET,
                f"{target.label.short} is not a toolchain: it is a {target.kind}",
            )
        return Declaration.of(target)

    def chosen(self, names: Sequence[str]) -> tuple[Declaration, ...]:
        """The named toolchains; all if none is named. Raises UsageError."""
        return tuple(map(self.find, names)) if names else self.declarations

    def own_lock(self) -> Lock:
        """The lock of the workspace itself, without kabuild's own entries."""
        return read_lock(self.root / LOCK_FILE)

    def is_own(self, declaration: Declaration) -> bool:
        """Whether the workspace itself declares it."""
        return (self.root / declaration.label.package).is_dir()

    def write(self, before: Mapping[str, LockEntry], after: Mapping[str, LockEntry]) -> None:
        """Write the changes from ``before`` to ``after`` into the lock of the workspace.

        Others may have changed it since ``before`` was read. Raises UsageError if it cannot be
        written.
        """
        changed = {label for label in {*before, *after} if before.get(label) != after.get(label)}
        try:
            with _alone(self.root):
                now = self.own_lock().entries
                kept = {label: entry for label, entry in now.items() if label not in changed}
                new = {label: entry for label, entry in after.items() if label in changed}
                write_lock(self.root / LOCK_FILE, {**kept, **new})
        except OSError as error:
            raise UsageError(
                Reason.BAD_LOCK, f"{LOCK_FILE} cannot be written: {error.strerror}"
            ) from None


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Lock a directory against other processes that lock it. Raises ``OSError``."""
    held = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # NFS, for example, cannot lock read-only files
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


@contextmanager
def declared() -> Iterator[ToolchainContext]:
    """The toolchains of the workspace at and above the working directory."""
    workspace = load_workspace(find_workspace(Path.cwd()))
    loader = Loader(workspace)
    broken: set[str] = set()

    def note(package: str, problem: KabuildError) -> None:
        broken.add(package)
        click.echo(f"{in_colour('left out', 'yellow')}: {problem}", err=True)

    known = (*declarations(loader), *declarations_elsewhere(loader, note))
    with (
        Store.open() as store,
        provision(
            workspace.root, store, fetch=False, locked=False, consulted=lambda _: None
        ) as resolver,
    ):
        trees = TreeStore(store.root / DIRECTORY, store.seal)
        yield ToolchainContext(workspace.root, loader, known, trees, resolver, frozenset(broken))


def users(loader: Loader, declaration: Declaration) -> list[str]:
    """The targets whose attributes name a toolchain, on any platform."""
    from kabuild.analysis.query import query

    found: set[str] = set()
    for platform in loader.platforms.names():
        try:
            text = f"rdeps(//..., {declaration.label}, 1)"
            nodes = query(loader, text, platform=platform)
        except KabuildError:  # not every platform has every toolchain
            continue
        found |= {node.label.short for node in nodes}
    return sorted(found - {declaration.label.short})
