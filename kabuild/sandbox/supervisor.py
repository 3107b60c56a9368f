"""The trusted process next to a worker: enforces the limits, ends the tree, saves the outputs.

In a sandbox it is pid 1 of the pid namespace. It speaks to the spawner over a control socket:
when that says anything or closes, the run is over; its own last word is the report. Self-
contained, because it runs inside a zygote.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from . import protocol
from .collect import Collector
from .process_tree import ProcessTree

_SAMPLE_SECONDS = 0.05
_GUARD_SECONDS = 0.02


@dataclass(frozen=True)
class Orders:
    """What a supervisor is told: where the outputs are, and the limits (see ``SandboxLimits``)."""

    root: str
    outputs: tuple[str, ...]
    contained: bool
    wall_seconds: float
    cpu_seconds: float | None
    memory_bytes: int | None
    processes: int
    scratch_bytes: int


def supervise(orders: Orders, worker: int, control_fd: int, collect_fd: int) -> int:
    """Watch ``worker`` to its end, collect its outputs, send the report. Returns 0."""
    control = socket.socket(fileno=control_fd)
    watch = _Watch(orders, worker, control)
    started = time.monotonic()
    with _Guard(orders, watch.tree) as guard:
        watch.until_end()
    if guard.limit:
        watch.status, watch.limit = None, guard.limit
    wall_seconds = time.monotonic() - started
    watch.tree.kill()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    report: dict[str, Any] = {
        "status": watch.status,
        "limit": watch.limit or _limit_of_signal(watch.status),
        "wall_seconds": wall_seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "max_rss_bytes": max(watch.peak_bytes, used.ru_maxrss << 10),
    }
    collector = Collector(orders.root, collect_fd, orders.scratch_bytes)
    try:
        report["outputs"] = collector.collect(orders.outputs)
    except OSError as error:
        report = {"unsaved": error.errno}
    try:
        protocol.send(control, report)
    except OSError:
        return 1  # the reader is gone
    return 0


def _limit_of_signal(status: int | None) -> str | None:
    if status is None or not os.WIFSIGNALED(status):
        return None
    limits = {int(signal.SIGXCPU): "cpu", int(signal.SIGXFSZ): "file"}
    return limits.get(os.WTERMSIG(status))


class _Guard:
    """Ends a fork bomb, and whatever outlasts its time, in its own thread.

    To read what a process uses may mean to wait for locks, and to clean up behind it; the
    processes of a bomb fight about these for minutes. To count and to kill them never waits.
    ``limit`` is the name of the limit for which it killed, or None.
    """

    def __init__(self, orders: Orders, tree: ProcessTree) -> None:
        self.limit: str | None = None
        self._orders = orders
        self._tree = tree
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        if self._orders.contained:  # else counting is reading, and killing is not at once
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._orders.contained:
            self._thread.join()

    def _run(self) -> None:
        deadline = time.monotonic() + self._orders.wall_seconds + _SAMPLE_SECONDS
        while not self._over.wait(_GUARD_SECONDS):
            if self._tree.count() > self._orders.processes:
                self.limit = "processes"
            elif time.monotonic() > deadline:
                self.limit = self.limit or "wall"
            if self.limit:
                with suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)


class _Watch:
    """The time between the start of a worker and its end, whatever ends it.

    ``status`` is the worker's wait status, ``None`` when it had to be killed; ``limit`` is
    then the name of the limit, ``None`` for a cancelled run.
    """

    def __init__(self, orders: Orders, worker: int, control: socket.socket) -> None:
        self.tree = ProcessTree(contained=orders.contained)
        self.status: int | None = None
        self.limit: str | None = None
        self.peak_bytes = 0
        self._orders = orders
        self._worker = worker
        self._control = control

    def until_end(self) -> None:
        """Return when the worker has ended, broken a limit, or been cancelled."""
        deadline = time.monotonic() + self._orders.wall_seconds
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(os.pidfd_open(self._worker), select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            events = poll.poll(max(0.0, min(_SAMPLE_SECONDS, left)) * 1000)
            self._reap()
            if self.status is not None:
                return
            if any(fd == self._control.fileno() for fd, _ in events):
                return
            self.limit = "wall" if left <= 0 else self._broken_limit()
            if self.limit:
                return

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._worker:
                self.status = status

    def _broken_limit(self) -> str | None:
        orders, usage = self._orders, self.tree.usage()
        self.peak_bytes = max(self.peak_bytes, usage.resident_bytes)
        if usage.tasks > orders.processes:
            return "processes"
        if orders.cpu_seconds is not None:
            reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
            if usage.cpu_seconds + reaped.ru_utime + reaped.ru_stime > orders.cpu_seconds:
                return "cpu"
        limit = orders.memory_bytes
        if limit is not None and usage.resident_bytes > limit < self.tree.private_bytes():
            return "memory"
        return None
