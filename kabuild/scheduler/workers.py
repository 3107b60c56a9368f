"""Runs of actions, and the threads for them; the scheduler decides which and when."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Mapping
from typing import Protocol

from kabuild.base import threads
from kabuild.base.clock import Clock
from kabuild.base.errors import KabuildError
from kabuild.execution.prepared import Prepared
from kabuild.model.action import Action
from kabuild.model.result import ActionResult, Settled


class Executor(Protocol):
    """Settles single actions; see ``execution.CachedExecutor``."""

    def anticipate(self, actions: Iterable[Action], produced: Mapping[str, ActionResult]) -> None:
        """Hear which actions are looked up next, before the first of them is."""
        ...

    def lookup(self, action: Action, produced: Mapping[str, ActionResult]) -> Settled | Prepared:
        """The cached outcome of ``action``, or what ``execute`` needs. Quick."""
        ...

    def execute(self, prepared: Prepared, cancel: threading.Event) -> Settled:
        """Run an action. Called on a worker."""
        ...

    def skip(self, action: Action, because: str) -> Settled:
        """Settle an action that will not run."""
        ...


class Run:
    """One action on one worker. Once it has ended, exactly one of three is set:

    ``settled``, ``error`` (which the build handles) or ``bug`` (which ends it).
    """

    def __init__(self, label: str, prepared: Prepared, slots: tuple[int, ...]) -> None:
        self.label = label
        self.prepared = prepared
        self.slots = slots
        self.seconds = 0.0
        self.settled: Settled | None = None
        self.error: KabuildError | None = None
        self.bug: BaseException | None = None

    def carry_out(self, executor: Executor, cancel: threading.Event, clock: Clock) -> None:
        """Run the action to its end. Never raises."""
        started = clock.monotonic()
        try:
            self.settled = executor.execute(self.prepared, cancel)
        except KabuildError as error:
            self.error = error
        except BaseException as bug:  # noqa: BLE001 - raised again by the scheduler
            self.bug = bug
        self.seconds = clock.monotonic() - started


class Workers(Protocol):
    """Carries runs beside the one thread that calls these methods."""

    def start(self, run: Run, executor: Executor, cancel: threading.Event, clock: Clock) -> None:
        """Begin ``run`` at once."""
        ...

    def wait(self, timeout: float | None) -> Run | None:
        """A run that has ended, or None after ``timeout`` seconds (None: no limit)."""
        ...


class ThreadWorkers:
    """As many threads as concurrent runs; idle threads are reused."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[tuple[Run, Executor, threading.Event, Clock]] = (
            queue.SimpleQueue()
        )
        self._ended: queue.SimpleQueue[Run] = queue.SimpleQueue()
        self._threads = 0
        self._running = 0

    def start(self, run: Run, executor: Executor, cancel: threading.Event, clock: Clock) -> None:
        """Begin ``run`` at once. Raises InfraError if there is no room for a thread."""
        if self._running == self._threads:
            name = f"kabuild-worker-{self._threads + 1}"
            threads.start(threading.Thread(target=self._work, name=name, daemon=True))
            self._threads += 1
        self._running += 1
        self._todo.put((run, executor, cancel, clock))

    def wait(self, timeout: float | None) -> Run | None:
        """A run that has ended, or None after ``timeout`` seconds."""
        try:
            run = self._ended.get(timeout=timeout)
        except queue.Empty:
            return None
        self._running -= 1
        return run

    def _work(self) -> None:
        while True:
            run, executor, cancel, clock = self._todo.get()
            run.carry_out(executor, cancel, clock)
            self._ended.put(run)
