"""The places whose changes may affect a build: files, directories, and the links to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from kabuild.execution.inputs import SKIPPED_NAMES
from kabuild.loading.request import Request
from kabuild.loading.roots import WORKSPACE_FILE, source_roots
from kabuild.model.action import Source
from kabuild.pipeline import Plan
from kabuild.toolchain.lock import LOCK_FILE

_MOST_LINKS = 40
"""Links that Linux follows in one path."""


@dataclass(frozen=True)
class Places:
    """Where to look for changes.

    Attributes:
        paths: files, and directories with all that they hold.
        workspace: its directory. Any file in it may be the one that a broken build lacks.
        skipped: directories in it that builds write: results and the store.
    """

    paths: frozenset[Path]
    workspace: Path
    skipped: frozenset[Path]

    def directories(self) -> frozenset[Path]:
        """The directories to watch, each without those below it; missing ones as well.

        Links are not followed, and unreadable directories are left out. Editors replace files, so
        the directory of a file is watched; the file itself if its directory is unreadable.
        """
        found: set[Path] = set()
        for path in self.paths:
            is_hidden = path.parent.is_dir() and not os.access(path.parent, os.R_OK)
            found.add(path if is_hidden else path.parent)
            if path.is_dir():
                found.update(_below(path, SKIPPED_NAMES.__contains__))
        found.update(_below(self.workspace, _is_private, self.skipped))
        return frozenset(found)


def paths_of(planned: Plan) -> frozenset[Path]:
    """The files and directories that a plan and its actions read, with the links to them."""
    root = planned.loaded.workspace.root
    paths = {root / WORKSPACE_FILE}
    if (root / LOCK_FILE).is_file():
        paths.add(root / LOCK_FILE)
    paths |= {path for path in planned.loaded.loader.files() if path.is_relative_to(root)}
    for action in planned.analysis.graph.closure(map(str, planned.roots)):
        for _, item in action.inputs:
            if isinstance(item, Source) and item.root == "workspace":
                paths.add(root / item.path)
    return frozenset(paths).union(*map(_followed, paths))


def all_paths_of(planned: Plan) -> frozenset[Path]:
    """``paths_of`` and the sources outside the workspace: of the user, kabuild and repositories."""
    workspace = planned.loaded.workspace
    roots = source_roots(workspace.root, workspace.repositories.values())
    outside = {
        roots[item.root] / item.path
        for action in planned.analysis.graph.closure(map(str, planned.roots))
        for _, item in action.inputs
        if isinstance(item, Source) and item.root != "workspace"
    }
    return paths_of(planned) | outside | {*planned.loaded.loader.files()}


def given_paths(request: Request) -> frozenset[Path]:
    """The files that the flags name, with the links to them: these may be re-pointed."""
    given = (request.solution, request.salt_file)
    return frozenset().union(*(_followed(request.cwd / path) for path in given if path is not None))


def _followed(path: Path) -> Iterator[Path]:
    """The links on the way of an absolute path, each in its real directory, and where they lead."""
    at, links = Path("/"), 0
    pending = [*reversed(path.parts[1:])]
    while pending:
        name = pending.pop()
        if name == "..":
            at = at.parent
            continue
        here = at / name
        try:
            target = here.readlink()
        except OSError:
            at = here
            continue
        yield here
        links += 1
        if links > _MOST_LINKS:
            return
        if target.is_absolute():
            at = Path("/")
        pending += reversed([part for part in target.parts if part != "/"])
    yield at


def _below(
    top: Path, is_skipped: Callable[[str], bool], skipped: AbstractSet[Path] = frozenset()
) -> Iterator[Path]:
    """``top`` and the readable directories below it."""
    for directory, names, _ in os.walk(top):
        at = Path(directory)
        if os.access(at, os.R_OK):
            yield at
        names[:] = [name for name in names if not is_skipped(name) and at / name not in skipped]


def _is_private(name: str) -> bool:
    """Whether a directory has no declarations, as ``.git`` and ``__pycache__``."""
    return name.startswith((".", "__"))
