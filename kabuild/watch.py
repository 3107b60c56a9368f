"""Builds that follow a file: again on every change, and never for one that is out of date."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kabuild.base.errors import KabuildError, Reason
from kabuild.loading.request import Request
from kabuild.loading.roots import BUILD_FILE, WORKSPACE_FILE
from kabuild.model.artifact import Source
from kabuild.model.event import EventSink
from kabuild.pipeline import Plan, Summary, execute, load, plan
from kabuild.sandbox import Spawner
from kabuild.store import Store

DEBOUNCE_MS = 50
"""Milliseconds of quiet after a change: editors write a file in several steps."""

Changes = Iterator[set[Path]]


def watched_paths(planned: Plan, request: Request) -> frozenset[Path]:
    """The directories and files whose change may change what the plan says."""
    root = planned.loaded.workspace.root
    paths = {root / WORKSPACE_FILE}
    paths |= {root / label.package / BUILD_FILE for label in planned.tasks}
    for action in planned.analysis.graph.closure(map(str, planned.roots)):
        for _, item in action.inputs:
            if isinstance(item, Source) and item.root == "workspace":
                paths.add(root / item.path)
    if request.solution is not None:
        paths.add((request.cwd / request.solution).resolve())
    return frozenset(paths)


class Watch:
    """One request, built again whenever something that it reads changes.

    ``on_summary`` hears of each build that came to its end, ``on_error`` of what is wrong
    with a declaration or a flag: the next change may mend it.
    """

    def __init__(
        self,
        request: Request,
        store: Store,
        sink: EventSink,
        *,
        on_summary: Callable[[Summary], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._request = request
        self._store = store
        self._sink = sink
        self._on_summary = on_summary
        self._on_error = on_error
        self._paths: frozenset[Path] = frozenset()

    def run(self, changes: Callable[[Iterable[Path]], Changes], first: Plan) -> None:
        """Build now and after every change, until ``changes`` ends.

        ``changes`` yields sets of paths that changed below the directories that it is given.
        A build that is under way when something changes is stopped.
        """
        self._paths = watched_paths(first, self._request)
        with Spawner() as spawner:
            build = self._start(spawner)
            try:
                for changed in changes({_directory(path) for path in self._paths}):
                    if any(_concerns(path, self._paths) for path in changed):
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
            if not stop.is_set():
                self._on_error(error)
            return
        if not stop.is_set():
            self._on_summary(summary)

    def _build_once(self, stop: threading.Event, spawner: Spawner) -> Summary:
        planned = plan(self._request, load(self._request), self._store)
        self._paths = watched_paths(planned, self._request)
        return execute(self._request, planned, self._store, self._sink, stop=stop, spawner=spawner)


class _Build:
    """A build in a thread of its own, which can be cancelled."""

    def __init__(self, work: Callable[[threading.Event], None]) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=work, args=(self._stop,), name="build")
        self._thread.start()

    def cancel(self) -> None:
        """Stop it, and wait until it has stopped."""
        self._stop.set()
        self._thread.join()


def _is_outdated(summary: Summary) -> bool:
    """Whether a file was saved between the plan and the action that reads it: nobody's fault."""
    return any(item.fault == Reason.INPUT_CHANGED.name for item in summary.settled.values())


def _directory(path: Path) -> Path:
    """What to watch for a path: editors replace files, so their directories."""
    return path if path.is_dir() else path.parent


def _concerns(changed: Path, watched: frozenset[Path]) -> bool:
    return changed in watched or any(parent in watched for parent in changed.parents)
