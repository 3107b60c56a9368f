"""Builds that follow files: again on every change, and never for an outdated version."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from kabuild.base import threads
from kabuild.base.errors import KabuildError, Reason
from kabuild.builder import Builder
from kabuild.loading.request import Request
from kabuild.pipeline import Plan, Summary
from kabuild.sandbox import Spawner
from kabuild.watched import Places, given_paths, paths_of

Changes = Iterator[set[Path]]


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

    def run(self, changes: Callable[[Callable[[], Places]], Changes], first: Plan) -> None:
        """Build now and after every change, until ``changes`` ends.

        ``changes`` yields sets of changed paths in the places that it asks for: they change with
        each plan. A change stops the current build.
        """
        self._root = first.loaded.workspace.root
        self._paths = paths_of(first) | given_paths(self._request)
        with Spawner() as spawner:
            build = self._start(spawner)
            try:
                for changed in changes(self.places):
                    if build.bug is not None:
                        raise build.bug
                    if any(map(self._concerns, changed)):
                        build.cancel()
                        build = self._start(spawner)
            finally:
                build.cancel()

    def places(self) -> Places:
        """Where to look for changes now."""
        out, store = self._root / "out", self._builder.store.root
        return Places(self._paths, self._root, frozenset({out, store}))

    def _start(self, spawner: Spawner) -> _Build:
        return _Build(lambda stop: self._build(stop, spawner))

    def _build(self, stop: threading.Event, spawner: Spawner) -> None:
        try:
            summary = self._build_once(stop, spawner)
            while _is_outdated(summary) and not stop.is_set():
                summary = self._build_once(stop, spawner)
        except KabuildError as error:
            self._is_broken = True
            self._paths |= given_paths(self._request)  # a link may lead elsewhere now
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
        self._paths = paths_of(planned) | given_paths(self._request)
        self._is_broken = False
        return builder.execute(self._request, planned)


class _Build:
    """A cancellable build in a thread. ``bug`` is what it raised beside errors of a build."""

    def __init__(self, work: Callable[[threading.Event], None]) -> None:
        self.bug: Exception | None = None
        self._work = work
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="build")
        threads.start(self._thread)

    def _run(self) -> None:
        try:
            self._work(self._stop)
        except Exception as error:  # noqa: BLE001 - raised again by the watch
            self.bug = error

    def cancel(self) -> None:
        """Stop it, and wait until it has stopped."""
        self._stop.set()
        self._thread.join()


def _is_outdated(summary: Summary) -> bool:
    """Whether a file was saved after the plan and before its action read it: not an error."""
    return any(item.fault == Reason.INPUT_CHANGED.name for item in summary.settled.values())
