"""The toolchains of a build: found, pinned and fetched, with the store's file index."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kabuild.base.errors import KabuildError, LoadError, Position, Reason
from kabuild.base.reading import read_plain
from kabuild.loading import Loader, builtin_root
from kabuild.loading.roots import BUILD_FILE
from kabuild.loading.toolchain_rule import TOOLCHAIN
from kabuild.model.digest import Digest
from kabuild.store import Store
from kabuild.store.faults import writing
from kabuild.store.paths import RECORDS, TOOLCHAINS
from kabuild.toolchain import Declaration, Fetched, Resolver
from kabuild.toolchain.fetched import Fetch
from kabuild.toolchain.intact import InstalledFiles, Intact
from kabuild.toolchain.lock import LockedFile, read_locks
from kabuild.toolchain.record_memory import RecordMemory
from kabuild.toolchain.tree_check import Consulted
from kabuild.toolchain.tree_store import TreeStore

if TYPE_CHECKING:
    from kabuild.loading.build_file import Package

PACKAGES = "toolchains"
"""Where toolchains are usually declared: in packages at and below ``//toolchains``."""


@contextmanager
def provision(
    root: Path, store: Store, *, fetch: bool, locked: bool, consulted: Consulted
) -> Iterator[Resolver]:
    """Finds the toolchains of the workspace at ``root``; unchanged ones cost a few stats.

    ``fetch`` allows downloads; ``locked`` refuses toolchains that are not in the lock.
    ``consulted`` is called with every file and directory that an answer depends on.
    """

    def digest(path: Path) -> Digest:
        consulted(path)
        return store.index.digest(str(path))[0]

    records = RecordMemory(store.root / RECORDS, digest, store.seal)
    trees = TreeStore(store.root / TOOLCHAINS, store.seal)
    yield Resolver(
        file_digest=digest,
        record_digest=records,
        lock=cache(lambda: read_locks(root, builtin_root())),
        trees=trees,
        fetch=_fetching_into(trees) if fetch else None,
        locked=locked,
        consulted=consulted,
        has_secret=_has_secret,
    )
    with store.best_effort(), writing(str(store.root)):
        records.save()


def intact(store: Store) -> Intact:
    """Finds installed files that changed, with the store's file index; for one build."""
    return InstalledFiles(lambda path: store.index.digest(str(path))[0])


def declarations(loader: Loader) -> Iterator[Declaration]:
    """All toolchains in ``//toolchains/...``, of the workspace and those that ship with kabuild."""
    root = loader.workspace.root
    below = set(loader.packages_below(PACKAGES)) if (root / PACKAGES).is_dir() else set()
    for name in sorted(below | set(loader.siblings(PACKAGES))):
        yield from _declared_in(loader.package(name))


def declarations_elsewhere(
    loader: Loader, broken: Callable[[str, KabuildError], None]
) -> Iterator[Declaration]:
    """All toolchains of the workspace outside of ``//toolchains/...``.

    Only packages whose BUILD.toml contains the word are loaded. Broken ones are passed to
    ``broken`` with the error, and left out.
    """
    root = loader.workspace.root
    for name in loader.packages_below(""):
        if is_usual(name):
            continue
        try:
            if TOOLCHAIN.kind.encode() not in read_plain(root / name / BUILD_FILE):
                continue
            package = loader.package(name)
        except OSError as error:
            position = Position(f"{name}/{BUILD_FILE}" if name else BUILD_FILE)
            why = f"cannot be read: {error.strerror}"
            broken(name, LoadError(Reason.MISSING_FILE, why, position=position))
        except KabuildError as error:
            broken(name, error)
        else:
            yield from _declared_in(package)


def is_usual(package: str) -> bool:
    """Whether a package is ``//toolchains`` or below it."""
    return package == PACKAGES or package.startswith(f"{PACKAGES}/")


def _declared_in(package: Package) -> Iterator[Declaration]:
    for target in package.targets.values():
        if target.kind == TOOLCHAIN.kind:
            yield Declaration.of(target)


def _has_secret(name: str) -> bool:
    """Whether the user's environment has a secret that a toolchain needs."""
    from kabuild.execution.secrets import unfit

    return unfit(os.environ.get(name, "")) is None


def _fetching_into(trees: TreeStore) -> Fetch:
    """Fetches toolchains; imports the network code on first use."""

    def fetch(
        declaration: Declaration, pin: Fetched, files: tuple[LockedFile, ...], digest: str
    ) -> None:
        from kabuild.report.fetch_progress import make_fetch_progress
        from kabuild.toolchain.fetch.fetcher import Fetcher

        Fetcher(trees, progress=make_fetch_progress())(declaration, pin, files, digest)

    return fetch
