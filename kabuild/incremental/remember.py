"""Remembers a build: the files that it read, and its results."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeVar

from kabuild.base.own_files import write_own
from kabuild.incremental.identity import can_be_remembered, identity, platform_text
from kabuild.incremental.recall import MARK, Recalled
from kabuild.loading import builtin_root, kabuild_root
from kabuild.loading.request import Request
from kabuild.loading.roots import BUILD_FILE, SHARED, WORKSPACE_FILE
from kabuild.loading.walk import walk
from kabuild.model.label import Label, Pattern, repository_of
from kabuild.model.result import Settled
from kabuild.model.task_result import TaskResult
from kabuild.pipeline import Plan, Summary
from kabuild.store.build_memo import BuildMemo, BuildMemos, PackageMemo
from kabuild.store.stat_snapshot import Entry, snapshot_directories, snapshot_paths, snapshot_tree

SKIPPED = frozenset({"__pycache__", ".git"})
_ALWAYS = sys.maxsize
"""Trust any time: only the existence of a view counts."""

Results = dict[str, list[TaskResult]]


class _Labelled(Protocol):
    @property
    def label(self) -> Label: ...


_T = TypeVar("_T", bound=_Labelled)


def remember(
    request: Request,
    memories: BuildMemos,
    summary: Summary,
    recalled: Recalled | None,
    began_ns: int,
) -> None:
    """Remember the packages whose gates all passed, in sandboxes, and whose agents finished.

    ``began_ns`` is the time of day at which the build began to read files; files that are not
    clearly older are not trusted. Raises StoreError.
    """
    loaded = summary.plan.loaded
    root = loaded.workspace.root
    if not can_be_remembered(request) or summary.interrupted or loaded.loader.left_out:
        return
    table = _by_package(summary.table)
    own = _by_package(summary.settled.values())
    built = {name for name in table if recalled is None or name not in recalled.packages}
    fresh = {
        name: _package(name, table, own.get(name, []), summary.plan, began_ns)
        for name in built
        if name and all(map(_says_all, table[name]))
    }
    asked = str(request.platform or loaded.workspace.platform or "cpu")
    if recalled:
        kept = {name: recalled.memory.packages[name] for name in recalled.packages}
        shared, actions = recalled.memory.shared, recalled.memory.actions
    else:
        kept = {}
        shared = list(_shared(request, summary.plan, set(table), began_ns))
        actions = sum(label.package not in table for label in summary.settled)
    memory = BuildMemo(
        asked_platform=asked,
        platform=platform_text(root, asked, request.devices),
        shared=shared,
        actions=actions,
        packages={**kept, **fresh},
        others=tuple(sorted(built - fresh.keys())),
    )
    name = identity(request, root)
    memories.write(name, memory, _results(summary, fresh))
    with suppress(OSError):
        write_own(root / "out" / MARK, name.encode())


def _says_all(result: TaskResult) -> bool:
    """Whether gates and figures are all that a build says of a task."""
    return result.passed and result.hermetic and result.finished


def _by_package(items: Iterable[_T]) -> dict[str, list[_T]]:
    found: dict[str, list[_T]] = {}
    for item in items:
        found.setdefault(item.label.package, []).append(item)
    return found


def _results(summary: Summary, packages: Collection[str]) -> dict[str, list[str]]:
    """The keys that were used, by package; ``""`` for those of other packages."""
    results: dict[str, list[str]] = {}
    for label, item in summary.settled.items():
        if item.key:
            package = label.package if label.package in packages else ""
            results.setdefault(package, []).append(item.key.hash)
    return results


def _package(
    name: str, table: Results, own: Collection[Settled], plan: Plan, began_ns: int
) -> PackageMemo:
    root = plan.loaded.workspace.root
    return PackageMemo(
        seen=[
            *_sources(plan, name, began_ns),
            *snapshot_directories(_directories(root / "out" / name), _ALWAYS),
        ],
        needs=tuple(
            sorted((_producers(plan, [item.label for item in own]) & table.keys()) - {name})
        ),
        tasks=tuple(result.remembered() for result in table[name]),
        actions=len(own),
    )


def _sources(plan: Plan, name: str, began_ns: int) -> list[Entry]:
    """The sources of a package: its directory, or an imported task's original files."""
    loaded = plan.loaded
    if repository_of(name):
        return snapshot_paths(map(str, loaded.loader.external.originals(name)), began_ns)
    return snapshot_tree(str(loaded.workspace.root / name), began_ns, SKIPPED)


def _producers(plan: Plan, labels: list[Label]) -> set[str]:
    """The packages of all transitive dependencies of these actions."""
    graph = plan.analysis.graph
    seen = {str(label) for label in labels}
    pending = list(seen)
    while pending:
        new = set(graph.actions[pending.pop()].dependencies()) - seen
        seen |= new
        pending += new
    return {graph.actions[label].label.package for label in seen}


def _shared(request: Request, plan: Plan, tasks: Collection[str], began_ns: int) -> Iterator[Entry]:
    """The shared dependencies of all packages: kabuild, rules, toolchains, files from flags."""
    root = plan.loaded.workspace.root
    trees = {str(kabuild_root())}
    trees |= {str(base / name) for base in (root, builtin_root()) for name in SHARED}
    for target in plan.analysis.targets.values():
        package = target.target.label.package
        if package not in tasks and package.split("/")[0] not in SHARED:
            trees.add(str(root / package))
    locks = {str(path) for path in plan.loaded.loader.external.files()}
    files = {*locks, str(root / WORKSPACE_FILE), os.path.realpath(sys.executable), *plan.consulted}
    for given in (request.solution, request.salt_file):
        if given is not None:
            trees.add(str((request.cwd / given).absolute()))
    for tree in sorted(trees):
        yield from snapshot_tree(tree, began_ns, SKIPPED)
    yield from snapshot_paths(files, began_ns)
    directories = {path.rpartition("/")[0] for path in plan.consulted} | {*filter(None, sys.path)}
    scaffold = set(_scaffold(request, plan, tasks))
    yield from snapshot_directories(directories | scaffold, began_ns)
    yield from snapshot_paths([f"{path}/{BUILD_FILE}" for path in scaffold], began_ns)


def _scaffold(request: Request, plan: Plan, tasks: Collection[str]) -> Iterator[str]:
    """The directories that wildcards search, except packages with tasks."""
    workspace = plan.loaded.workspace
    root, here = str(workspace.root), workspace.package_of(request.cwd)
    inside = {f"{root}/{name}" for name in tasks}
    patterns = [Pattern.parse(text.rstrip("/"), package=here) for text in request.patterns]
    for pattern in patterns:
        if pattern.recursive and not repository_of(pattern.package):
            start = f"{root}/{pattern.package}" if pattern.package else root
            yield from (path for path, _ in walk(root, start) if not _lies_in(path, inside, root))


def _lies_in(path: str, directories: Collection[str], root: str) -> bool:
    """Whether ``path`` is one of ``directories`` or below one; all are below ``root``."""
    while len(path) > len(root):
        if path in directories:
            return True
        path = path.rpartition("/")[0]
    return False


def _directories(top: Path) -> Iterator[str]:
    """A directory and all below it."""
    for directory, _, _ in os.walk(top):
        yield directory
