"""Remembered answers, for all of a request or for some of its packages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.errors import KabuildError
from kabuild.base.reading import read_plain
from kabuild.incremental.identity import can_be_remembered, identity, platform_text
from kabuild.loading.request import Request
from kabuild.model.task_result import TaskResult
from kabuild.store.build_memo import BuildMemo, BuildMemos

MARK = ".request"
"""File in ``out/`` that names the request whose views are there."""


@dataclass(frozen=True)
class Recalled:
    """What is remembered of a request.

    Attributes:
        name: of the request, see ``identity``.
        memory: of its last build.
        packages: the unchanged ones; the others have to be built.
    """

    name: str
    memory: BuildMemo
    packages: frozenset[str]

    @property
    def is_complete(self) -> bool:
        """Whether nothing at all has to be built."""
        return not self.memory.others and len(self.packages) == len(self.memory.packages)

    def changed(self) -> frozenset[str]:
        """The packages that must be built."""
        return frozenset(self.memory.others) | self.memory.packages.keys() - self.packages

    def tasks(self) -> Iterable[TaskResult]:
        """The tasks of the unchanged packages."""
        return (
            task
            for name, package in self.memory.packages.items()
            if name in self.packages
            for task in package.tasks
        )

    def own_actions(self) -> int:
        """How many actions belong to the unchanged packages."""
        return sum(self.memory.packages[name].actions for name in self.packages)


def recall(request: Request, root: Path, memories: BuildMemos) -> Recalled | None:
    """What is remembered of a request and still valid; None if nothing is.

    ``root`` is the workspace's. Errors in the request are left to the build that follows.
    """
    if not can_be_remembered(request):
        return None
    name = identity(request, root)
    memory = memories.read(name)
    if memory is None or not _are_views_of(root, name) or not memory.holds():
        return None
    try:
        if platform_text(root, memory.asked_platform, request.devices) != memory.platform:
            return None
    except KabuildError:
        return None
    packages = memory.clean()
    return Recalled(name, memory, packages) if packages else None


def _are_views_of(root: Path, name: str) -> bool:
    try:
        return read_plain(root / "out" / MARK) == name.encode()
    except OSError:
        return False
