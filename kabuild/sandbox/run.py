"""One run of one command, from the request to the report."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kabuild.sandbox import protocol
from kabuild.sandbox.output import BoundedOutput
from kabuild.sandbox.zygote_process import ZygoteProcess

_POLL_SECONDS = 0.05
_GRACE_SECONDS = 60.0  # for set-up and for copying outputs, before the supervisor is given up
_FLOOD_FACTOR = 64  # see SandboxLimits.output_bytes
_READ_BYTES = 1 << 16
_NOTHING_RAN: dict[str, Any] = {
    "status": None,
    "limit": None,
    "wall_seconds": 0.0,
    "cpu_seconds": 0.0,
    "max_rss_bytes": 0,
    "outputs": [],
}


class Cancel(Protocol):
    """A request to stop a run, such as a ``threading.Event``."""

    def is_set(self) -> bool:
        """Whether to stop."""


class SupervisorLost(Exception):  # noqa: N818 - the spawner decides what it means
    """A run ended without a report, or its report says that the machine failed."""


class UnsavedOutputsError(OSError):
    """The outputs cannot be written to their directory, perhaps because the disk is full."""


@dataclass(frozen=True)
class Ended:
    """The supervisor's report (see ``supervisor``), and what the spawner observed."""

    report: dict[str, Any]
    stdout: bytes
    stderr: bytes
    cancelled: bool
    flooded: bool


class Run:
    """Sends an order to a zygote and waits for its end; use once.

    ``order`` is the message (see ``zygote``) and holds the limits.
    """

    def __init__(
        self,
        zygote: ZygoteProcess,
        order: dict[str, Any],
        collect_into: Path,
        cancel: Cancel,
    ) -> None:
        self._zygote = zygote
        self._order = order
        self._collect_into = collect_into
        self._cancel = cancel
        self._limits = order["limits"]
        self._cancelled = self._flooded = self._given_up = False
        self._report: dict[str, Any] | None = None

    def wait(self) -> Ended:
        """The end of the run. Raises ZygoteLost, SupervisorLost and UnsavedOutputsError."""
        with contextlib.ExitStack() as stack:
            control, streams = self._start(stack)
            outputs = {fd: BoundedOutput(self._limits["output_bytes"]) for fd in streams}
            self._follow(control, outputs)
            stdout, stderr = (outputs[fd].value() for fd in streams)
        report = self._report or {"error": "a sandbox ended without a report"}
        if "unsaved" in report:
            number = report["unsaved"]
            raise UnsavedOutputsError(number, os.strerror(number), str(self._collect_into))
        if "error" in report:
            if not self._cancelled:
                raise SupervisorLost(str(report["error"]))
            report = _NOTHING_RAN  # stopped while it was set up
        return Ended(report, stdout, stderr, self._cancelled, self._flooded)

    def _start(self, stack: contextlib.ExitStack) -> tuple[socket.socket, tuple[int, int]]:
        control, theirs = socket.socketpair()
        stack.enter_context(control)
        with theirs, contextlib.ExitStack() as passed:
            reads, writes = [], []
            for _ in range(2):
                read, write = os.pipe()
                stack.callback(os.close, read)
                passed.callback(os.close, write)
                reads.append(read)
                writes.append(write)
            collect = os.open(self._collect_into, os.O_RDONLY | os.O_DIRECTORY)
            passed.callback(os.close, collect)
            self._zygote.send({"run": self._order}, [theirs.fileno(), *writes, collect])
        return control, (reads[0], reads[1])

    def _follow(self, control: socket.socket, outputs: dict[int, BoundedOutput]) -> None:
        """Read until the report has come and the streams have ended."""
        deadline = time.monotonic() + self._limits["wall_seconds"] + _GRACE_SECONDS
        poll = select.poll()
        open_fds = {control.fileno(), *outputs}
        for fd in open_fds:
            poll.register(fd, select.POLLIN)
        while open_fds:
            for fd, _ in poll.poll(_POLL_SECONDS * 1000):
                if fd in outputs:
                    data = os.read(fd, _READ_BYTES)
                    outputs[fd].add(data)
                    ended = not data
                else:
                    self._report = _receive(control)
                    ended = True
                if ended:
                    poll.unregister(fd)
                    open_fds.discard(fd)
            self._stop_if_unwanted(control, outputs)
            if time.monotonic() > deadline:
                self._give_up()
                deadline += _GRACE_SECONDS

    def _stop_if_unwanted(self, control: socket.socket, outputs: dict[int, BoundedOutput]) -> None:
        if self._cancelled or self._flooded or self._report is not None:
            return
        flood = self._limits["output_bytes"] * _FLOOD_FACTOR
        self._flooded = any(output.total > flood for output in outputs.values())
        self._cancelled = self._cancel.is_set()
        if self._flooded or self._cancelled:
            with contextlib.suppress(OSError):
                control.shutdown(socket.SHUT_WR)

    def _give_up(self) -> None:
        """The supervisor is overdue: have the zygote kill it, which ends the streams too."""
        if self._given_up:
            raise SupervisorLost("a sandbox did not end when it was killed")
        self._given_up = True
        self._zygote.send({"kill": self._order["id"]})


def _receive(control: socket.socket) -> dict[str, Any] | None:
    try:
        received = protocol.receive(control)
    except OSError:
        return None
    return received[0] if received else None
