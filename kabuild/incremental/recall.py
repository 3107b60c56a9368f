"""The answer that is already known: for all of a request, or for most of its packages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.errors import KabuildError
from kabuild.incremental.identity import can_be_remembered, identity, platform_text
from kabuild.loading.request import Request
from kabuild.model.task_result import TaskResult
from kabuild.store.build_memo import BuildMemo, BuildMemos

MARK = ".request"
"""In ``out/``: whose views these are. Another request leaves others."""


@dataclass(frozen=True)
class Recalled:
    """What is known of a request.

    Attributes:
        name: of the request, see ``identity``.
        memory: of the last build that it asked for.
        packages: those that are as they were; the others have to be built.
    """

    name: str
    memory: BuildMemo
    packages: frozenset[str]

    @property
    def is_complete(self) -> bool:
        """Whether nothing at all has to be built."""
        return not self.memory.others and len(self.packages) == len(self.memory.packages)

    def changed(self) -> frozenset[str]:
        """The packages that have to be built."""
        return frozenset(self.memory.others) | self.memory.packages.keys() - self.packages

    def tasks(self) -> Iterable[TaskResult]:
        """The tasks of the packages that are as they were."""
        return (
            task
            for name, package in self.memory.packages.items()
            if name in self.packages
            for task in package.tasks
        )

    def own_actions(self) -> int:
        """How many actions belong to the packages that are as they were."""
        return sum(self.memory.packages[name].actions for name in self.packages)


def recall(request: Request, root: Path, memories: BuildMemos) -> Recalled | None:
    """What is remembered of a request and still holds; None where that is nothing.

    ``root`` is the workspace's. What is wrong with the request is not said here: the build
    that follows says it.
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
        return (root / "out" / MARK).read_text() == name
    except OSError:
        return False
