"""The warden of a runner: pid 1 of its sandbox, which freezes, thaws and buries it.

It runs trusted code only, keeps capabilities that the runner lacks, and cannot be signalled
or inspected by it. The judge speaks with it over a socket of their own. As the runner's
parent it learns from the kernel when a stop has reached every thread.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import time
from dataclasses import dataclass
from enum import IntEnum, unique
from pathlib import Path

from base.program import MachineFault

from runners.held_up import Scheduled, Waits

_REQUEST = struct.Struct("<II")  # command and milliseconds
_REPLY = struct.Struct("<II3Q")  # state, wait status, counts
_PATIENCE_SECONDS = 30.0
_CPU_CLOCK_OF_PROCESS = 2  # CPUCLOCK_SCHED, beside the inverted pid: how Linux numbers such clocks


@unique
class _Command(IntEnum):
    FREEZE = 1
    THAW = 2
    KILL = 3
    WAIT = 4
    COUNT = 5


@unique
class _State(IntEnum):
    RUNNING = 0
    FROZEN = 1
    ENDED = 2


@dataclass(frozen=True)
class Counted:
    """What the kernel has counted so far, in ns; zeros where it does not count.

    Attributes:
        thread_ns: for which the runner's main thread ran.
        process_ns: for which all its threads ran.
        waited_ns: for which the runner and its warden were ready to run and could not.
    """

    thread_ns: int = 0
    process_ns: int = 0
    waited_ns: int = 0


def supervise(worker: int, fd: int) -> int:
    """Serve the judge until it hangs up; the sandbox ends with the return."""
    ward = _Ward(worker)
    with socket.socket(fileno=fd) as judge:
        while True:
            request = judge.recv(_REQUEST.size)
            if not request:
                return 0
            command, milliseconds = _REQUEST.unpack(request)
            command = _Command(command)
            reply = ward.obey(command, milliseconds)
            if reply is not None:
                counted = ward.count() if command is _Command.COUNT else (0, 0, 0)
                judge.send(_REPLY.pack(*reply, *counted))


class _Ward:
    """The runner, seen by its parent."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.exit = os.pidfd_open(pid)
        self.status: int | None = None
        self._waits = Waits(pid)
        self._waited_ns = 0

    def obey(self, command: _Command, milliseconds: int) -> tuple[int, int] | None:
        """Do as told; the reply, where the command has one."""
        if command is _Command.THAW:
            self._signal(signal.SIGCONT)
            return None
        if command is _Command.FREEZE:
            self._signal(signal.SIGSTOP)
            self._collect(os.WUNTRACED)
        elif command is _Command.KILL:
            self._signal(signal.SIGKILL)
            while self.status is None:
                self._collect(0)
        elif command is _Command.WAIT and self.status is None:
            poll = select.poll()
            poll.register(self.exit, select.POLLIN)
            if poll.poll(milliseconds):
                self._collect(0)
        if self.status is not None:
            return _State.ENDED, self.status
        return (_State.FROZEN if command is _Command.FREEZE else _State.RUNNING), 0

    def count(self) -> tuple[int, int, int]:
        """The fields of ``Counted``; zeros after the runner's end."""
        if self.status is not None:
            return 0, 0, 0
        self._waited_ns += self._waits.since_last()
        own = Scheduled.of(Path("/proc/thread-self")).waited_ns
        main = Scheduled.of(Path(f"/proc/{self.pid}/task/{self.pid}")).ran_ns
        clock = ~self.pid << 3 | _CPU_CLOCK_OF_PROCESS
        process = 0
        with contextlib.suppress(OSError):
            process = time.clock_gettime_ns(clock)
        return main, process, self._waited_ns + own

    def _signal(self, number: int) -> None:
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _collect(self, options: int) -> None:
        if self.status is None:
            _, status = os.waitpid(self.pid, options)
            if not os.WIFSTOPPED(status):
                self.status = status


class Warden:
    """The judge's side. Each method raises MachineFault when the warden itself is lost."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        link.settimeout(_PATIENCE_SECONDS)

    def freeze(self) -> int | None:
        """Stop every thread of the runner; its wait status when it has ended instead."""
        return self._ended(_Command.FREEZE)

    def count(self) -> Counted:
        """What a frozen runner has run so far. A question of its own: no clock waits for it."""
        return Counted(*self._ask(_Command.COUNT)[2:])

    def thaw(self) -> None:
        """Let a frozen runner go on."""
        self._tell(_Command.THAW)

    def kill(self) -> int:
        """End the runner; its wait status, which is older if it had ended before."""
        status = self._ended(_Command.KILL)
        if status is None:
            raise MachineFault("a killed runner is still there")
        return status

    def wait(self, seconds: float) -> int | None:
        """The runner's wait status, or None when it still lives after ``seconds``."""
        return self._ended(_Command.WAIT, int(seconds * 1000))

    def close(self) -> None:
        """Hang up: the warden ends, and with it everything in the sandbox."""
        self._link.close()

    def _tell(self, command: _Command, milliseconds: int = 0) -> None:
        try:
            self._link.send(_REQUEST.pack(command, milliseconds))
        except OSError as error:
            raise MachineFault(f"the runner's warden is gone: {error}") from error

    def _ended(self, command: _Command, milliseconds: int = 0) -> int | None:
        """The runner's wait status where it has ended."""
        state, status, *_ = self._ask(command, milliseconds)
        return status if state == _State.ENDED else None

    def _ask(self, command: _Command, milliseconds: int = 0) -> tuple[int, ...]:
        self._tell(command, milliseconds)
        started = time.monotonic()
        try:
            reply = self._link.recv(_REPLY.size)
        except OSError as error:
            waited = time.monotonic() - started
            raise MachineFault(f"no word of the runner's warden for {waited:.0f} s") from error
        if len(reply) != _REPLY.size:
            raise MachineFault("the runner's warden died")
        return _REPLY.unpack(reply)
