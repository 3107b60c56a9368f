"""The warden of a runner: pid 1 of its sandbox, which freezes, thaws and buries it.

It runs trusted code only, keeps capabilities that the runner lacks, and cannot be signalled
or inspected by it. The judge speaks with it over a socket of their own. As the runner's
parent it learns from the kernel when a stop has reached every thread. A runner that the kernel
cannot stop, or kill, within a time is in a system call of its own making: the warden says so, and
whoever asked blames the candidate.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, unique
from pathlib import Path

from base.program import MachineFault

from runners.sched_stats import Scheduled, Waits

_REQUEST = struct.Struct("<II")  # command; milliseconds, or how many ranges
_REPLY = struct.Struct("<II3Q")  # state, wait status, counts
_STOP_SECONDS = 10.0
"""For a signal to reach all threads of a runner: milliseconds, or what a busy machine adds."""
_PATIENCE_SECONDS = 6 * _STOP_SECONDS  # with the warden, which never waits longer than that
_READING_FDS = 2
_RANGE = struct.Struct("<QQQ")  # as ``runners.results`` has it
_CPU_CLOCK_OF_PROCESS = 2  # CPUCLOCK_SCHED, beside the inverted pid: how Linux numbers such clocks


_NEWS = (signal.SIGCHLD,)


@unique
class _Command(IntEnum):
    FREEZE = 1
    THAW = 2
    KILL = 3
    WAIT = 4
    COUNT = 5
    READ = 6


@unique
class _State(IntEnum):
    RUNNING = 0
    FROZEN = 1
    ENDED = 2
    DEFIANT = 3
    """Told to stop or to end, and doing neither."""
    ABSENT = 4
    """What was to be read is not there."""
    FORBIDDEN = 5
    """The kernel lets nobody read another process's memory."""


class Unstoppable(Exception):  # noqa: N818 (an event, no error of ours)
    """The runner did not stop, although its warden lives and has told it to."""


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
    signal.pthread_sigmask(signal.SIG_BLOCK, _NEWS)
    ward = _Ward(worker)
    with socket.socket(fileno=fd) as judge:
        while True:
            request, fds, _, _ = socket.recv_fds(judge, _REQUEST.size, _READING_FDS)
            if not request:
                return 0
            command, number = _REQUEST.unpack(request)
            command = _Command(command)
            reading = command is _Command.READ
            reply = ward.read(number, *fds) if reading else ward.obey(command, number)
            if reply is not None:
                counted = ward.count() if command is _Command.COUNT else (0, 0, 0)
                judge.send(_REPLY.pack(*reply, *counted))


class _Ward:
    """The runner, seen by its parent."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self._waits = Waits(pid)
        self._waited_ns = 0

    def obey(self, command: _Command, milliseconds: int) -> tuple[int, int] | None:
        """Do as told; the reply, where the command has one."""
        if command is _Command.THAW:
            self._signal(signal.SIGCONT)
            return None
        state = _State.RUNNING
        if command is _Command.FREEZE:
            self._signal(signal.SIGSTOP)
            stopped = self._await(os.WUNTRACED, _STOP_SECONDS)
            state = _State.FROZEN if stopped else _State.DEFIANT
        elif command is _Command.KILL:
            self._signal(signal.SIGKILL)
            self._await(0, _STOP_SECONDS)
            state = _State.DEFIANT
        elif command is _Command.WAIT:
            self._await(0, milliseconds / 1000)
        return (state, 0) if self.status is None else (_State.ENDED, self.status)

    def read(self, count: int, ranges_fd: int, target_fd: int) -> tuple[int, int]:
        """Copy ranges of the frozen runner's memory into a file of the judge's; the reply."""
        try:
            memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
        except OSError:
            os.close(ranges_fd)
            os.close(target_fd)
            return _State.FORBIDDEN, 0
        with mapped(ranges_fd) as ranges, mapped(target_fd) as target:
            try:
                for address, size, first in _RANGE.iter_unpack(ranges[: count * _RANGE.size]):
                    _copy(memory, address, memoryview(target)[first : first + size])
            except OSError:
                return _State.ABSENT, 0
            finally:
                os.close(memory)
        return _State.FROZEN, 0

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

    def _await(self, options: int, seconds: float) -> bool:
        """Whether the runner has ended, or stopped where ``options`` ask for that, in time."""
        deadline = time.monotonic() + seconds
        while self.status is None:
            pid, status = os.waitpid(self.pid, options | os.WNOHANG)
            if pid and os.WIFSTOPPED(status):
                return True
            if pid:
                self.status = status
            elif (left := deadline - time.monotonic()) > 0:
                signal.sigtimedwait(_NEWS, left)
            else:
                return False
        return True


@contextlib.contextmanager
def mapped(fd: int) -> Iterator[mmap.mmap]:
    """All of a file, whose descriptor is closed."""
    try:
        memory = mmap.mmap(fd, os.fstat(fd).st_size)
    except OSError:  # it is sealed against writing
        memory = mmap.mmap(fd, os.fstat(fd).st_size, prot=mmap.PROT_READ)
    finally:
        os.close(fd)
    yield memory
    with contextlib.suppress(BufferError):  # a view is left in an exception's frames
        memory.close()


def _copy(memory: int, address: int, target: memoryview) -> None:
    """Fill ``target`` from an address of an open process's memory. Raises OSError."""
    done = 0
    while done < len(target):
        got = os.preadv(memory, [target[done:]], address + done)
        if not got:
            raise OSError(errno.EIO, "no memory there")
        done += got


class Warden:
    """The judge's side. Each method raises MachineFault when the warden itself is lost."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        link.settimeout(_PATIENCE_SECONDS)

    def freeze(self) -> int | None:
        """Stop every thread of the runner; its wait status when it has ended instead.

        Raises Unstoppable.
        """
        return self._ended(_Command.FREEZE)

    def count(self) -> Counted:
        """What a frozen runner has run so far. A question of its own: no clock waits for it."""
        return Counted(*self._ask(_Command.COUNT)[2:])

    def read(self, ranges_fd: int, target_fd: int, count: int) -> bool | None:
        """Copy ranges of a frozen runner's memory into a file; None where nobody may do that.

        The first file has ``count`` times an address, a size and where it belongs in the second,
        each of 64 bits. False where there is no such memory.
        """
        state, *_ = self._ask(_Command.READ, count, (ranges_fd, target_fd))
        return None if state == _State.FORBIDDEN else state == _State.FROZEN

    def thaw(self) -> None:
        """Let a frozen runner go on."""
        self._tell(_Command.THAW)

    def kill(self) -> int:
        """End the runner; its wait status, which is older if it had ended before.

        Raises Unstoppable; then it ends later, with its sandbox.
        """
        status = self._ended(_Command.KILL)
        assert status is not None, "a warden's answer to this has one"
        return status

    def wait(self, seconds: float) -> int | None:
        """The runner's wait status, or None when it still lives after ``seconds``."""
        return self._ended(_Command.WAIT, int(seconds * 1000))

    def close(self) -> None:
        """Hang up: the warden ends, and with it everything in the sandbox."""
        self._link.close()

    def _tell(self, command: _Command, number: int = 0, fds: tuple[int, ...] = ()) -> None:
        try:
            socket.send_fds(self._link, [_REQUEST.pack(command, number)], fds)
        except OSError as error:
            raise MachineFault(f"the runner's warden is gone: {error}") from error

    def _ended(self, command: _Command, milliseconds: int = 0) -> int | None:
        """The runner's wait status where it has ended."""
        state, status, *_ = self._ask(command, milliseconds)
        if state == _State.DEFIANT:
            raise Unstoppable
        return status if state == _State.ENDED else None

    def _ask(
        self, command: _Command, number: int = 0, fds: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        self._tell(command, number, fds)
        started = time.monotonic()
        try:
            reply = self._link.recv(_REPLY.size)
        except OSError as error:
            waited = time.monotonic() - started
            raise MachineFault(f"no word of the runner's warden for {waited:.0f} s") from error
        if len(reply) != _REPLY.size:
            raise MachineFault("the runner's warden died")
        return _REPLY.unpack(reply)
