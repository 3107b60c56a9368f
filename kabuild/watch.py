"""Builds that follow files: again on every change, and never for an outdated version."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from kabuild.base import threads
from kabuild.base.errors import KabuildError, Reason
from kabuild.builder import Builder
from kabuild.loading.request import Request
from kabuild.loading.roots import WORKSPACE_FILE
from kabuild.model.action import Source
from kabuild.pipeline import Plan, Summary
from kabuild.sandbox import Spawner
from kabuild.toolchain.lock import LOCK_FILE

DEBOUNCE_MS = 50
"""Milliseconds of quiet after a change: editors write a file in several steps."""

Changes = Iterator[set[Path]]


def watched_paths(planned: Plan, request: Request) -> frozenset[Path]:
    """The directories and files whose changes may affect the plan."""
    root = planned.loaded.workspace.root
    paths = {root / WORKSPACE_FILE}
    if (root / LOCK_FILE).is_file():
        paths.add(root / LOCK_FILE)
    paths |= {path for path in planned.loaded.loader.files() if path.is_relative_to(root)}
    for action in planned.analysis.graph.closure(map(str, planned.roots)):
        for _, item in action.inputs:
            if isinstance(item, Source) and item.root == "workspace":
                paths.add(root / item.path)
    for given in (request.solution, request.salt_file):
        if given is not None:
            paths.add((request.cwd / given).resolve())
    return frozenset(paths)


class Watch:
    """One request, built again whenever something that it reads changes.

    ``on_summary`` is called after each finished build, ``on_error`` with an error in a declaration
    or a flag, which the next change may fix.
    """

    def __init__(
        self,
        request: Request,
        builder: Builder,
        *,
        on_summary: Callable[[Summary], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._request = request
        self._builder = builder
        self._on_summary = on_summary
        self._on_error = on_error
        self._paths: frozenset[Path] = frozenset()
        self._root = Path()
        self._is_broken = False

    def run(self, changes: Callable[[Iterable[Path]], Changes], first: Plan) -> None:
        """Build now and after every change, until ``changes`` ends.

        ``changes`` yields sets of changed paths below the directories that it is given. A change
        stops the current build.
        """
        self._root = first.loaded.workspace.root
        self._paths = watched_paths(first, self._request)
        with Spawner() as spawner:
            build = self._start(spawner)
            try:
                for changed in changes({_directory(path) for path in self._paths}):
                    if any(map(self._concerns, changed)):
                        build.cancel()
                        build = self._start(spawner)
            finally:
                build.cancel()

    def _start(self, spawner: Spawner) -> _Build:
        return _Build(lambda stop: self._build(stop, spawner))

    def _build(self, stop: threading.Event, spawner: Spawner) -> None:
        try:
            summary = self._build_once(stop, spawner)
            while _is_outdated(summary) and not stop.is_set():
                summary = self._build_once(stop, spawner)
        except KabuildError as error:
            self._is_broken = True
            if not stop.is_set():
                self._on_error(error)
            return
        if not stop.is_set():
            self._on_summary(summary)

    def _concerns(self, changed: Path) -> bool:
        """Whether a change calls for a build.

        If the last build had no plan, its files are unknown: any file of the workspace may be the
        missing or wrong one.
        """
        if changed in self._paths or not self._paths.isdisjoint(changed.parents):
            return True
        if any(changed in path.parents for path in self._paths):
            return True  # a new directory, whose files may have been missed
        if not self._is_broken or changed.is_relative_to(self._builder.store.root):
            return False
        root = self._root
        parts = changed.relative_to(root).parts if changed.is_relative_to(root) else (".",)
        return not any(part.startswith((".", "__")) for part in parts) and parts[0] != "out"

    def _build_once(self, stop: threading.Event, spawner: Spawner) -> Summary:
        builder = replace(self._builder, stopping=lambda: nullcontext(stop), spawner=spawner)
        planned = builder.plan(self._request)
        self._paths = watched_paths(planned, self._request)
        self._is_broken = False
        return builder.execute(self._request, planned)


class _Build:
    """A cancellable build in a thread of its own."""

    def __init__(self, work: Callable[[threading.Event], None]) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=work, args=(self._stop,), name="build")
        threads.start(self._thread)

    def cancel(self) -> None:
        """Stop it, and wait until it has stopped."""
        self._stop.set()
        self._thread.join()


def _is_outdated(summary: Summary) -> bool:
    """Whether a file was saved after the plan and before its action read it: not an error."""
    return any(item.fault == Reason.INPUT_CHANGED.name for item in summary.settled.values())


def _directory(path: Path) -> Path:
    """The directory to watch for a path, since editors replace files."""
    return path if path.is_dir() else path.parent
