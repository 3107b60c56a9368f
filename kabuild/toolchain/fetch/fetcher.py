"""From a locked pin to a tree in the store."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from kabuild.base.errors import KabuildError
from kabuild.base.fs import remove_tree
from kabuild.toolchain.completeness import lacking
from kabuild.toolchain.declaration import Declaration, Fetched
from kabuild.toolchain.fetch.apt_sources import apt_suites
from kabuild.toolchain.fetch.archive import ArchiveSource
from kabuild.toolchain.fetch.deb import DebSource
from kabuild.toolchain.fetch.download import download
from kabuild.toolchain.fetch.http import Http
from kabuild.toolchain.fetch.pip_settings import pip_settings
from kabuild.toolchain.fetch.progress import FetchProgress, Silent
from kabuild.toolchain.fetch.pypi import PypiSource
from kabuild.toolchain.lock import LockedFile
from kabuild.toolchain.tree_store import TREE, TreeStore
from kabuild.toolchain.unpack.entry import bad_archive
from kabuild.toolchain.unpack.formats import entries
from kabuild.toolchain.unpack.tree_writer import TreeWriter

PARALLEL = 5
"""Downloads at a time."""


class Source(Protocol):
    """A source of files: wheels, packages, or an archive with a URL."""

    @property
    def http(self) -> Http:
        """How to download from ``urls``."""
        ...

    def find(self, requirement: str, machine: str) -> LockedFile:
        """The file for a requirement on a kind of machine, for the lock.

        Raises ToolchainError(FETCH_FAILED) if it cannot be found.
        """
        ...

    def urls(self, file: LockedFile) -> Iterator[str]:
        """The URLs of a locked file, best first; none if no index has it.

        Raises ToolchainError(FETCH_FAILED) if no index answers.
        """
        ...


@dataclass
class Sources:
    """The sources of each kind of pin, as this machine is configured."""

    @cached_property
    def pypi(self) -> PypiSource:
        """The indexes of the user's pip."""
        return PypiSource(pip_settings())

    @cached_property
    def deb(self) -> DebSource:
        """The mirrors of the machine's apt."""
        return DebSource(apt_suites())

    def of(self, pin: Fetched) -> Source:
        """The source of a pin's files."""
        if pin.kind == "pypi":
            return self.pypi
        if pin.kind == "deb":
            return self.deb
        return ArchiveSource(Http(), pin.requirements[0], pin.sha256)


@dataclass
class Fetcher:
    """Downloads, verifies and unpacks pins into a store of trees."""

    trees: TreeStore
    sources: Sources = field(default_factory=Sources)
    progress: FetchProgress = field(default_factory=Silent)

    def __call__(
        self, declaration: Declaration, pin: Fetched, files: Iterable[LockedFile], digest: str
    ) -> None:
        """Put the tree ``digest``, made of ``files``, into the store, unless it is present.

        Raises ToolchainError, at the declaration's position.
        """
        try:
            with self.trees.working(digest) as work:
                if not self.trees.has(digest):
                    self._fetch(declaration, pin, tuple(files), digest, work)
        except KabuildError as error:
            error.position = error.position or declaration.position
            raise
        finally:
            self.progress.stop()

    def _fetch(
        self,
        declaration: Declaration,
        pin: Fetched,
        files: tuple[LockedFile, ...],
        digest: str,
        work: Path,
    ) -> None:
        began, name = time.monotonic(), declaration.label.short
        work.mkdir(exist_ok=True)
        with ThreadPoolExecutor(PARALLEL) as pool:
            parts = [*pool.map(lambda file: self._download(pin, file, work), files)]
            self.progress.unpacking(name)
            tree = work / TREE
            remove_tree(tree)
            tree.mkdir()
            writer = TreeWriter(tree, pin.layout, sum(file.size for file in files))
            tasks = [
                pool.submit(_unpack, writer, part, file.base)
                for part, file in zip(parts, files, strict=True)
            ]
            for task in tasks:
                task.result()
        writer.finish(name)
        if missing := lacking(tree, declaration.requires):
            raise bad_archive(name, f"has no {', '.join(missing)}, which its declaration requires")
        self.trees.publish(digest, work, writer.files)
        self.progress.finished(name, time.monotonic() - began)

    def _download(self, pin: Fetched, file: LockedFile, work: Path) -> Path:
        target = work / f"{file.sha256}.part"
        done = target.stat().st_size if target.exists() else 0
        self.progress.started(file.base, file.size, done)
        source = self.sources.of(pin)
        download(
            source.http,
            source.urls(file),
            file,
            target,
            lambda size: self.progress.advanced(file.base, size),
        )
        return target


def _unpack(writer: TreeWriter, archive: Path, name: str) -> None:
    with entries(archive, name) as found:
        for entry in found:
            writer.add(entry, name)
