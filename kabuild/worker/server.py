"""The socket of a node: one connection for each action, from the program that an engine started."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

from kabuild.base import threads
from kabuild.base.errors import InfraError, Reason, described
from kabuild.store.cas import Cas
from kabuild.worker.node import FAILED, STOPPING, Report

_POLL = 0.2
_WAITING = 256
_MOST_TEXT = 4000
_MODE = 0o666
"""Engines run as their own users; who connects can only have actions run, as engines do."""


class Runner(Protocol):
    """Runs staged actions; see ``Node``."""

    def run(self, top: int, cancel: threading.Event) -> Report:
        """Run the one in the directory ``top``."""
        ...


class WorkerServer:
    """Listens at a path until it is closed; a context. Blobs of reports are in ``cas``."""

    def __init__(self, path: Path, runner: Runner, cas: Cas, *, drain: float = 0.0) -> None:
        """``drain``: seconds that running actions have to end by themselves.

        Raises InfraError where nothing can listen at ``path``, or another node does.
        """
        self._path = path
        self._runner = runner
        self._cas = cas
        self._drain = drain
        self._cancel = threading.Event()
        self._closed = threading.Event()
        self._running: set[threading.Thread] = set()
        self._guard = threading.Lock()
        self._door = _listening(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def serve(self, stopped: Callable[[], bool]) -> None:
        """Take connections until ``stopped`` says so."""
        self._door.settimeout(_POLL)
        while not stopped():
            try:
                connection, _ = self._door.accept()
            except TimeoutError:
                continue
            except OSError:
                if self._closed.is_set():
                    return
                raise
            thread = threading.Thread(target=self._handle, args=(connection,), daemon=True)
            with self._guard:
                self._running.add(thread)
            threads.start(thread)

    def close(self) -> None:
        """Take no more connections, wait for what runs, and then end it."""
        self._closed.set()
        self._path.unlink(missing_ok=True)
        self._door.close()
        self._wait(self._drain)
        self._cancel.set()
        self._wait(None)

    def _wait(self, seconds: float | None) -> None:
        """Wait for all that runs, or for so long altogether."""
        with self._guard:
            running = [*self._running]
        deadline = None if seconds is None else time.monotonic() + seconds
        for thread in running:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _handle(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._answer(connection)
        except OSError:
            pass  # the client is gone
        finally:
            with self._guard:
                self._running.discard(threading.current_thread())

    def _answer(self, connection: socket.socket) -> None:
        data, fds, _, _ = socket.recv_fds(connection, 16, 1)
        try:
            if data != b"run" or len(fds) != 1:
                return
            cancel = threading.Event()
            over = threading.Event()
            watcher = threading.Thread(
                target=self._watch, args=(connection, cancel, over), daemon=True
            )
            threads.start(watcher)
            try:
                report = self._run(fds[0], cancel)
            finally:
                over.set()
                connection.shutdown(socket.SHUT_RD)  # the watcher would look up only later
                watcher.join()
            self._send(connection, report)
        finally:
            for fd in fds:
                os.close(fd)

    def _run(self, top: int, cancel: threading.Event) -> Report:
        if self._cancel.is_set():
            return Report(STOPPING, "this node is about to stop")
        try:
            return self._runner.run(top, cancel)
        except Exception as bug:  # noqa: BLE001 - one action's, not the node's
            return Report(FAILED, f"a bug of kabuild: {described(bug)}")

    def _watch(
        self, connection: socket.socket, cancel: threading.Event, over: threading.Event
    ) -> None:
        """Set ``cancel`` once the program is gone, or the node is to stop."""
        connection.settimeout(_POLL)
        while not over.is_set() and not cancel.is_set():
            if self._cancel.is_set():
                cancel.set()
                return
            try:
                if connection.recv(16) == b"":
                    cancel.set()
            except TimeoutError:
                continue
            except OSError:
                cancel.set()

    def _send(self, connection: socket.socket, report: Report) -> None:
        connection.settimeout(None)
        for file in report.files:
            said = {"file": file.path, "executable": file.executable}
            with self._cas.open(file.digest) as blob:
                socket.send_fds(connection, [json.dumps(said).encode()], [blob.fileno()])
        said_last = {"code": report.code, "text": report.text[-_MOST_TEXT:]}
        connection.sendall(json.dumps(said_last).encode())
        connection.shutdown(socket.SHUT_RDWR)


def _listening(path: Path) -> socket.socket:
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with suppress(OSError):
            door.connect(str(path))
            raise InfraError(Reason.NO_RESOURCES, f"another node serves at {path}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        door.close()
        door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        door.bind(str(path))
        path.chmod(_MODE)
        door.listen(_WAITING)
    except OSError as error:
        door.close()
        what = f"nothing can listen at {path}: {error.strerror or error}"
        raise InfraError(Reason.NO_RESOURCES, what) from None
    except BaseException:
        door.close()
        raise
    return door
