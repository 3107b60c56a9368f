"""A Triton candidate on the host, in two processes: its module in one, its kernels in the other.

This process has the judge's buffers, runs kernels from the text of the candidate's file, and keeps
the clock. The module is in its own process (``host_process``). There tensors have addresses but no
memory, as on the host of a GPU. The module must request all work on tensors. It may request its own
kernels, fills, copies, reads of a few single elements, and writes of its own data. So only its
kernels can compute results from the inputs.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import re
import signal
import struct
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NoReturn

from base.program import Program, RunnerPolicy
from pyrunner import host
from pyrunner.faults import HostFault
from runners import confinement, lockdown
from runners.control_block import ControlBlock, Region
from runners.killed import Death
from triton_cpu import interpreter
from triton_cpu.bounds import Allocation
from triton_cpu.plain import MalformedError

from triton_apart import host_process
from triton_apart.device_work import DeviceWork
from triton_apart.link import Gone, Link
from triton_apart.territory import Territory

_PR_SET_DUMPABLE = 4
_NO_MEMORY = (
    b"the module's own process has no tensor's memory: only kernels can read and write it\n"
)


def divided(program: Program, policy: RunnerPolicy, control: int) -> Apart:
    """Split this process in two. It must have one thread, and must not have loaded the candidate.

    Only the half with the judge's socket ``control`` returns, under its system-call filter.
    """
    interpreter.install()
    apart = Apart(program, launches=policy.launches)
    if policy.counted:
        apart.count()
    apart.divide(control, policy)
    lockdown.install(lockdown.assemble())
    return apart


class Apart:
    """The ``Subject`` of Triton programs for the processor."""

    def __init__(self, program: Program, *, launches: bool) -> None:
        path = confinement.candidate_path(program)
        self._territory = Territory()
        self._library = interpreter.library(lambda filename: path if filename == path else "")
        self._library.launches = self._launches = launches
        self._work = DeviceWork(self._territory, self._library)
        self._link, self._theirs = Link.pair()
        self._program = program
        self._pid = 0
        self._last_words = -1
        self._legal: list[list[Allocation]] = []
        self._block: ControlBlock | None = None

    def divide(self, control: int, policy: RunnerPolicy) -> None:
        """Fork the process for the module, which must not have the judge's socket."""
        self._last_words, dying = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(control)
            self._link.close()
            confinement.limit_address_space(self._program, policy)
            host_process.run(self._program, self._theirs, self._territory.heap, dying)
        self._theirs.close()
        os.close(dying)
        # The other process has the same user; this keeps it from reading this one's memory.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        self._halt()

    def count(self) -> None:
        """Count the accesses of kernels, and print the counts on standard error."""
        counter = importlib.import_module("triton_counted.counter")
        self._library.observe(counter.Counter(confinement.candidate_path(self._program)))

    def start(self) -> None:
        """Let the other process import the module."""
        self._work.begin([])
        self._ask(["start"])

    def load(self, fds: list[int]) -> None:
        """Map a config's buffers, and tell the other process about its tensors."""
        self._territory.unmap_files()
        self._memory = host.mapped(fds[0], writable=False)
        self._block = block = ControlBlock.decode(self._memory[:])
        bases = [self._territory.map_file(fd) for fd in fds[1:]]
        slots = [list(self._regions(block, bases, slot)) for slot in range(block.slots)]
        self._legal = [
            [Allocation(region.name, address, region.size) for address, region in slot]
            for slot in slots
        ]
        self._work.begin([])
        told = [[[a, r.size, r.code, list(r.shape)] for a, r in slot] for slot in slots]
        self._ask(["load", told, dict((*block.scalars, *block.dims))])

    def run(self, calls: int, left_out: int = -1) -> int:
        """Make the calls of a batch; returns the time in ns."""
        order = self._order(calls) if calls else ()
        self._rouse()
        gc.disable()
        started = perf_counter_ns()
        for index, slot in enumerate(order):
            self._library.launches = self._launches and index != left_out
            self._call(slot)
        elapsed = perf_counter_ns() - started
        gc.enable()
        self._halt()
        return elapsed

    def hold(self, fd: int) -> bool:
        """Return False: calls on the host cannot be held back. Closes ``fd``."""
        os.close(fd)
        return False

    def queue(self, calls: int, _: int) -> int:
        """Not called, because ``hold`` returns False."""
        return self.run(calls)

    def opened(self, _: int) -> int:
        """Not called, because ``hold`` returns False."""
        return 0

    def replay(self, calls: int) -> None:
        """Return None: calls on the host cannot be recorded."""

    def collect(self) -> None:
        """Do nothing: the results are already in their buffers."""

    def _order(self, calls: int) -> tuple[int, ...]:
        """The slots of a batch's calls."""
        assert self._block is not None
        return struct.unpack_from(f"<{calls}I", self._memory, self._block.order_offset)

    def _call(self, slot: int) -> None:
        legal = self._legal[slot]
        self._work.begin(legal)
        with interpreter.memory.registered(legal):
            self._converse(["call", slot])

    def _ask(self, request: list[Any]) -> None:
        self._rouse()
        self._converse(request)
        self._halt()

    def _converse(self, request: list[Any]) -> None:
        """Send a request to the other process, and serve its requests until it is ready."""
        try:
            self._link.send(request)
            while True:
                message = self._link.receive()
                if message == ["ready"]:
                    return
                if message[0] == "fault":
                    raise HostFault(tuple(code for code in message[1:3] if type(code) is int))
                self._link.send(["done", self._work.obey(message[0], message[1:])])
        except Gone:
            self._end_likewise()

    def _rouse(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    def _halt(self) -> None:
        """Stop the other process. Raises MalformedError if it has sent another message."""
        os.kill(self._pid, signal.SIGSTOP)
        _, status = os.waitpid(self._pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self._end_as(status)
        if not self._link.is_quiet():
            raise MalformedError("a request after the call's end")

    def _end_likewise(self) -> NoReturn:
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        status, death = Death.bury(self._pid)
        # At the hard limit of its CPU time the kernel sends SIGKILL, which gives no reason.
        self._end_as(int(signal.SIGXCPU) if death.at_its_limit else status)

    def _end_as(self, status: int) -> NoReturn:
        """End this process as the other one has ended, so that the judge sees it."""
        if not os.WIFSIGNALED(status):
            os._exit(os.waitstatus_to_exitcode(status) & 255)
        number = os.WTERMSIG(status)
        if number in {signal.SIGSEGV, signal.SIGBUS}:
            os.write(2, self._place() + _NO_MEMORY)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(1)  # if that signal does not end a process

    def _place(self) -> bytes:
        """The candidate's innermost line, as the other process wrote it before it died."""
        os.set_blocking(self._last_words, False)
        with contextlib.suppress(BlockingIOError):
            told = os.read(self._last_words, 1 << 16).decode(errors="replace")
            path = re.escape(confinement.candidate_path(self._program))
            if found := re.search(rf'File "{path}", line (\d+) in (\w+)', told):
                name = Path(confinement.candidate_path(self._program)).name
                return f"{name}:{found[1]} in {found[2]}\n".encode()
        return b""

    @staticmethod
    def _regions(block: ControlBlock, bases: list[int], slot: int) -> Iterator[tuple[int, Region]]:
        for regions, base, stride in zip(
            (block.inputs, block.outputs), bases, block.strides, strict=True
        ):
            for region in regions:
                yield base + slot * stride + region.first, region
