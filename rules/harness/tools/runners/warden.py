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
from enum import IntEnum, unique
from pathlib import Path

from base.program import MachineFault

_REQUEST = struct.Struct("<II")  # command and milliseconds
_REPLY = struct.Struct("<IIQQ")  # state, wait status, processor times
_PATIENCE_SECONDS = 30.0
_CPU_CLOCK_OF_PROCESS = 2  # CPUCLOCK_SCHED, beside the inverted pid: how Linux numbers such clocks


@unique
class _Command(IntEnum):
    FREEZE = 1
    THAW = 2
    KILL = 3
    WAIT = 4


@unique
class _State(IntEnum):
    RUNNING = 0
    FROZEN = 1
    ENDED = 2


def supervise(worker: int, fd: int) -> int:
    """Serve the judge until it hangs up; the sandbox ends with the return."""
    ward = _Ward(worker)
    with socket.socket(fileno=fd) as judge:
        while True:
            request = judge.recv(_REQUEST.size)
            if not request:
                return 0
            command, milliseconds = _REQUEST.unpack(request)
            reply = ward.obey(_Command(command), milliseconds)
            if reply is not None:
                judge.send(_REPLY.pack(*reply, *ward.processor_ns()))


class _Ward:
    """The runner, seen by its parent."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.exit = os.pidfd_open(pid)
        self.status: int | None = None

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
        elif self.status is None:
            poll = select.poll()
            poll.register(self.exit, select.POLLIN)
            if poll.poll(milliseconds):
                self._collect(0)
        if self.status is not None:
            return _State.ENDED, self.status
        return (_State.FROZEN if command is _Command.FREEZE else _State.RUNNING), 0

    def processor_ns(self) -> tuple[int, int]:
        """What the kernel says that the main thread and the whole process have run so far.

        Zeros where it does not say, and after the end.
        """
        if self.status is not None:
            return 0, 0
        clock = ~self.pid << 3 | _CPU_CLOCK_OF_PROCESS
        with contextlib.suppress(OSError):
            thread = Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text()
            return int(thread.split()[0]), time.clock_gettime_ns(clock)
        return 0, 0

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
    """The judge's side. Each method raises MachineFault when the warden itself is lost.

    Attributes:
        processor_ns: how long the runner's main thread and its whole process had run when the
            warden last answered. While the runner is frozen that is still true.
    """

    def __init__(self, link: socket.socket) -> None:
        self.processor_ns = (0, 0)
        self._link = link
        link.settimeout(_PATIENCE_SECONDS)

    def freeze(self) -> int | None:
        """Stop every thread of the runner; its wait status when it has ended instead."""
        return self._ask(_Command.FREEZE)

    def thaw(self) -> None:
        """Let a frozen runner go on."""
        self._tell(_Command.THAW)

    def kill(self) -> int:
        """End the runner; its wait status, which is older if it had ended before."""
        status = self._ask(_Command.KILL)
        if status is None:
            raise MachineFault("a killed runner is still there")
        return status

    def wait(self, seconds: float) -> int | None:
        """The runner's wait status, or None when it still lives after ``seconds``."""
        return self._ask(_Command.WAIT, int(seconds * 1000))

    def close(self) -> None:
        """Hang up: the warden ends, and with it everything in the sandbox."""
        self._link.close()

    def _tell(self, command: _Command, milliseconds: int = 0) -> None:
        try:
            self._link.send(_REQUEST.pack(command, milliseconds))
        except OSError as error:
            raise MachineFault(f"the runner's warden is gone: {error}") from error

    def _ask(self, command: _Command, milliseconds: int = 0) -> int | None:
        self._tell(command, milliseconds)
        started = time.monotonic()
        try:
            reply = self._link.recv(_REPLY.size)
        except OSError as error:
            waited = time.monotonic() - started
            raise MachineFault(f"no word of the runner's warden for {waited:.0f} s") from error
        if len(reply) != _REPLY.size:
            raise MachineFault("the runner's warden died")
        state, status, *processor_ns = _REPLY.unpack(reply)
        self.processor_ns = (processor_ns[0], processor_ns[1])
        return status if state == _State.ENDED else None
