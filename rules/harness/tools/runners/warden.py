"""The warden of a runner: pid 1 of its sandbox, which freezes, thaws and reaps it.

It runs trusted code only, keeps capabilities that the runner lacks, and cannot be signalled
or inspected by the runner. The judge talks to it over a separate socket. As the runner's
parent it learns from the kernel when a stop has reached every thread. A runner that the kernel
cannot stop or kill within a time limit is in a system call of its own making. The warden reports
that, and the caller blames the candidate.
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
from contextlib import ExitStack, closing
from dataclasses import astuple, dataclass
from enum import IntEnum, unique
from pathlib import Path

from base.granted_time import PIECE_SECONDS, GrantedTime
from base.program import MachineFault
from terms.reasons import Reason

from runners import diagnosis
from runners.killed import Death
from runners.result_memory import Misplaced, ResultMemory
from runners.sched_stats import Scheduled, Waits, steps_back

_REQUEST = struct.Struct("<II")  # command; milliseconds, or number of ranges
_REPLY = struct.Struct("<II5Q")  # state, wait status, counts
_STOP_SECONDS = 10.0
"""Time for a signal to reach all threads of a runner: milliseconds, plus the machine's load."""
_MOST_TIMES = 5  # the limit of that time, in multiples, however busy the machine is
_PATIENCE_SECONDS = 60.0  # with the warden, which never waits longer than this
_READING_FDS = 3  # ranges and their target, then a file in which ranges may lie
_RANGE = struct.Struct("<QQQ")  # same layout as in ``runners.results``
_CPU_CLOCK_OF_PROCESS = 2  # CPUCLOCK_SCHED, beside the inverted pid: Linux's number for such clocks


_LACKING = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)

_NEWS = (signal.SIGCHLD,)
_WARDEN = 1
_NOTHING = (0,) * 5  # of ``Counted``


@unique
class _Command(IntEnum):
    FREEZE = 1
    THAW = 2
    KILL = 3
    WAIT = 4
    COUNT = 5
    READ = 6
    DEATH = 7


@unique
class _State(IntEnum):
    RUNNING = 0
    FROZEN = 1
    ENDED = 2
    DEFIANT = 3
    """It was told to stop or to end, and did neither."""
    ABSENT = 4
    """There is no memory at the address to be read."""
    FORBIDDEN = 5
    """The kernel does not allow reading another process's memory."""
    BARRED = 6
    UNWRITTEN = 7
    """These two, and ABSENT, as in ``runners.result_memory``; the number of the range follows."""
    UNREADABLE = 8
    """What the kernel tells of the runner makes no sense to the warden."""


_MISPLACED = {int(_State[how.name]): how for how in Misplaced}


class MisplacedResult(Exception):  # noqa: N818 (what the candidate did, no error of ours)
    """A range lies where the judge does not read one."""

    def __init__(self, how: Misplaced, index: int) -> None:
        super().__init__(how, index)
        self.how = how
        self.index = index


class Unstoppable(Exception):  # noqa: N818 (an event, no error of ours)
    """The runner did not stop, although its warden is alive and has told it to."""


@dataclass(frozen=True)
class Counted:
    """The kernel's counts so far, in ns; zeros if it does not count.

    Attributes:
        thread_ns: CPU time of the runner's main thread.
        process_ns: CPU time of all its threads.
        waited_ns: how long the runner and its warden were ready to run and could not.
        main_waited_ns: the same for the runner's main thread alone; 0 if it has lowered
            its session's priority.
        sandbox_ns: CPU time of all processes in its sandbox except the warden.
    """

    thread_ns: int = 0
    process_ns: int = 0
    waited_ns: int = 0
    main_waited_ns: int = 0
    sandbox_ns: int = 0

    @property
    def starved_ns(self) -> int:
        """How long programs outside the sandbox had the processors that the main thread wanted.

        The time of the sandbox's other threads is excluded: no candidate can make itself wait.
        """
        return max(0, self.main_waited_ns - max(0, self.sandbox_ns - self.thread_ns))

    def since(self, before: Counted) -> Counted:
        """The counts since ``before``."""
        return Counted(
            self.thread_ns - before.thread_ns,
            self.process_ns - before.process_ns,
            self.waited_ns - before.waited_ns,
            self.main_waited_ns - before.main_waited_ns,
            self.sandbox_ns - before.sandbox_ns,
        )


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
            reply = _reply(ward, _Command(command), number, fds)
            if reply is not None:
                judge.send(_REPLY.pack(*reply))


def _reply(ward: _Ward, command: _Command, number: int, fds: list[int]) -> tuple[int, ...] | None:
    """The fields of a reply, if the command has one.

    The ward chooses much of what the kernel tells of it. So an exception is the ward's own doing,
    unless this machine lacks something.
    """
    try:
        reading = command is _Command.READ
        reply = ward.read(number, *fds) if reading else ward.obey(command, number)
        return None if reply is None else (*reply, *_numbers(ward, command))
    except Exception as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) in _LACKING:
            raise
        return _State.UNREADABLE, 0, *_NOTHING


def _numbers(ward: _Ward, command: _Command) -> tuple[int, ...]:
    """The counts that a reply carries besides the state."""
    if command is _Command.COUNT:
        return ward.count()
    if command is _Command.DEATH:
        return (*astuple(ward.death), 0)
    return _NOTHING


class _Ward:
    """The runner, as seen by its parent."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self.death = Death()
        self._waits = Waits(pid)
        self._waited_ns = 0

    def obey(self, command: _Command, milliseconds: int) -> tuple[int, int] | None:
        """Obey a command; returns the reply if the command has one."""
        if command is _Command.THAW:
            self._signal(signal.SIGCONT)
            return None
        state = _State.RUNNING
        if command is _Command.FREEZE:
            self._signal(signal.SIGSTOP)
            stopped = self._await(os.WSTOPPED, _STOP_SECONDS)
            state = _State.FROZEN if stopped else _State.DEFIANT
        elif command is _Command.KILL:
            self._signal(signal.SIGKILL)
            self._await(0, _STOP_SECONDS)
            state = _State.DEFIANT
        elif command is _Command.WAIT:
            self._await(0, milliseconds / 1000)
        return (state, 0) if self.status is None else (_State.ENDED, self.status)

    def read(self, count: int, ranges_fd: int, target_fd: int, *lent_fds: int) -> tuple[int, int]:
        """Copy ranges of the frozen runner's memory into a file of the judge; returns the reply."""
        with ExitStack() as opened:
            for fd in lent_fds:
                opened.callback(os.close, fd)
            ranges, target = (opened.enter_context(mapped(fd)) for fd in (ranges_fd, target_fd))
            try:
                memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
                opened.callback(os.close, memory)
                places = opened.enter_context(closing(ResultMemory(self.pid, lent_fds)))
            except OSError:
                return _State.FORBIDDEN, 0
            wanted = list(_RANGE.iter_unpack(ranges[: count * _RANGE.size]))
            wrong = places.misplaced([(address, size) for address, size, _ in wanted])
            if wrong:
                how, index = wrong
                return _State[how.name], index
            try:
                for address, size, first in wanted:
                    _copy(memory, address, memoryview(target)[first : first + size])
            except (OSError, OverflowError):  # the runner itself has noted the addresses
                return _State.ABSENT, 0
        return _State.FROZEN, 0

    def count(self) -> tuple[int, ...]:
        """The fields of ``Counted``; zeros after the runner's end."""
        if self.status is not None:
            return _NOTHING
        self._waited_ns += self._waits.since_last()
        own = Scheduled.of(Path("/proc/thread-self")).waited_ns
        main = Scheduled.of(Path(f"/proc/{self.pid}/task/{self.pid}"))
        all_ = (int(entry) for entry in os.listdir("/proc") if entry.isdecimal())  # noqa: PTH208
        sandbox = sum(_ran_ns(pid) for pid in all_ if pid != _WARDEN)
        waited = self._waited_ns + own
        starved = 0 if steps_back(self.pid) else main.waited_ns
        return main.ran_ns, _ran_ns(self.pid), waited, starved, sandbox

    def _signal(self, number: int) -> None:
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _await(self, options: int, seconds: float) -> bool:
        """Whether the runner ends in time, or stops in time if ``options`` ask for that.

        Time that its threads wait for processors is not counted, up to a limit.
        """
        granted, starving = GrantedTime(), Waits(self.pid)
        deadline, latest = granted.now() + seconds, granted.machine() + _MOST_TIMES * seconds
        while self.status is None:
            news = os.waitid(os.P_PID, self.pid, os.WEXITED | options | os.WNOHANG | os.WNOWAIT)
            if news and news.si_code == os.CLD_STOPPED:
                os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG)
                return True
            if news:
                self.status, self.death = Death.bury(self.pid)
                return True
            left = deadline - granted.now()
            if left <= 0 or granted.machine() > latest:
                return False
            period, sleep = granted.period(), granted.sleep()
            if signal.sigtimedwait(_NEWS, min(left, PIECE_SECONDS)) is None:
                sleep.over()
                period.withhold(starving.since_last() / 1e9)
        return True


def _ran_ns(pid: int) -> int:
    """The CPU time of all threads of a process; 0 if it has ended."""
    with contextlib.suppress(OSError):
        return time.clock_gettime_ns(~pid << 3 | _CPU_CLOCK_OF_PROCESS)
    return 0


@contextlib.contextmanager
def mapped(fd: int) -> Iterator[mmap.mmap]:
    """Map a whole file, and close its descriptor."""
    try:
        memory = mmap.mmap(fd, os.fstat(fd).st_size)
    except OSError:  # it is sealed against writing
        memory = mmap.mmap(fd, os.fstat(fd).st_size, prot=mmap.PROT_READ)
    finally:
        os.close(fd)
    yield memory
    with contextlib.suppress(BufferError):  # an exception's frames still hold a view
        memory.close()


def _copy(memory: int, address: int, target: memoryview) -> None:
    """Fill ``target`` from an address in an open process's memory. Raises OSError."""
    done = 0
    while done < len(target):
        got = os.preadv(memory, [target[done:]], address + done)
        if not got:
            raise OSError(errno.EIO, "no memory at this address")
        done += got


class Warden:
    """The judge's side. Each method raises MachineFault if the warden itself is lost.

    And CandidateFault if the kernel tells it things of the runner that make no sense.
    """

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        link.settimeout(_PATIENCE_SECONDS)

    def freeze(self) -> int | None:
        """Stop every thread of the runner; returns its wait status if it has already ended.

        Raises Unstoppable.
        """
        return self._ended(_Command.FREEZE)

    def count(self) -> Counted:
        """The counts of a frozen runner. A separate request, so that no clock waits for it."""
        return Counted(*self._ask(_Command.COUNT)[2:])

    def read(
        self, ranges_fd: int, target_fd: int, count: int, lent_fds: tuple[int, ...] = ()
    ) -> bool:
        """Copy ranges of a frozen runner's memory into a file; False if that is not allowed.

        The first file has ``count`` records: an address, a size and an offset in the second file,
        each of 64 bits. Raises MisplacedResult unless each range is in pages of the runner's own
        that it has written, or where it has mapped one of ``lent_fds``.
        """
        state, index, *_ = self._ask(_Command.READ, count, (ranges_fd, target_fd, *lent_fds))
        if state in _MISPLACED:
            raise MisplacedResult(_MISPLACED[state], index)
        return state == _State.FROZEN

    def thaw(self) -> None:
        """Let a frozen runner continue."""
        self._tell(_Command.THAW)

    def kill(self) -> int:
        """End the runner; returns its wait status, an earlier one if it had already ended.

        Raises Unstoppable; then the runner ends later, with its sandbox.
        """
        status = self._ended(_Command.KILL)
        assert status is not None, "a warden's answer to this has one"
        return status

    def death(self) -> Death:
        """The kernel's figures for a runner that has ended."""
        return Death(*self._ask(_Command.DEATH)[2:6])

    def wait(self, seconds: float) -> int | None:
        """The runner's wait status, or None if it is still alive after ``seconds``."""
        return self._ended(_Command.WAIT, int(seconds * 1000))

    def close(self) -> None:
        """Hang up: the warden ends, and everything in the sandbox with it."""
        self._link.close()

    def _tell(self, command: _Command, number: int = 0, fds: tuple[int, ...] = ()) -> None:
        try:
            socket.send_fds(self._link, [_REQUEST.pack(command, number)], fds)
        except OSError as error:
            raise MachineFault(f"the runner's warden is gone: {error}") from error

    def _ended(self, command: _Command, milliseconds: int = 0) -> int | None:
        """The runner's wait status if it has ended."""
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
            raise MachineFault(f"the runner's warden did not answer for {waited:.0f} s") from error
        if len(reply) != _REPLY.size:
            raise MachineFault("the runner's warden died")
        answer = _REPLY.unpack(reply)
        if answer[0] == _State.UNREADABLE:
            what = "has brought its process into a state that its warden cannot make out"
            raise diagnosis.fault(Reason.CRASH, what)
        return answer
