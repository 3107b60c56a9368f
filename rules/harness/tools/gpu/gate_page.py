"""The page of host memory that opens a gate: one word of the judge, and two answers.

A runner puts a kernel on its stream that fills the device until the first word holds the ticket
of the batch, and queues its calls behind it. Last in the queue is a kernel that writes the ticket
into another word, so that no host thread has to wake up for it. When the whole device is idle, the
runner writes the third.

The source of those kernels, for the driver to compile, follows the words: so the process that holds
the candidate needs no file for it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from base.program import MachineFault

WORDS = 4096  # bytes before the kernel's text
OPEN, ENDED, IDLE = 0, 16, 32  # places of the words, each in its own cache line
_BLOCKER = Path(__file__).with_name("blocker.ptx")
_PEEKS = 16  # reads of the word between two looks at the clock
_DEAF_NS = 20_000_000
"""How long the runner is not listened to: that takes up to 20 us, and the word might come."""
_F_ADD_SEALS, _SIZE_SEALS = 1033, 1 | 2 | 4


class Moment(NamedTuple):
    """When something happened, in ns of the monotonic clock.

    Attributes:
        doubt_ns: how much earlier or later it may have been, as the processor was elsewhere.
    """

    ns: int
    doubt_ns: int


class GatePage:
    """The judge's end.

    Attributes:
        fd: the descriptor to lend to the runner.
    """

    def __init__(self) -> None:
        text = _BLOCKER.read_bytes() + b"\0"
        size = -(-(WORDS + len(text)) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.fd = os.memfd_create("gate", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _SIZE_SEALS)
        self._memory = mmap.mmap(self.fd, size)
        self._memory[WORDS : WORDS + len(text)] = text
        self._words = memoryview(self._memory)[:WORDS].cast("I")
        self._ticket = 0

    def shut(self) -> int:
        """Start a new batch, whose gate is shut; returns its ticket."""
        self._ticket += 1
        return self._ticket

    def open(self) -> Moment:
        """Open the gate of the latest batch; returns when."""
        before = time.monotonic_ns()
        self._words[OPEN] = self._ticket
        return Moment(before, time.monotonic_ns() - before)

    def await_word(self, word: int, seconds: float, spoke: Callable[[], bool]) -> Moment:
        """Wait without sleeping until ``ENDED`` or ``IDLE`` holds the ticket; returns when it did.

        Also ends when ``spoke`` says that the runner has sent something else or hung up, and after
        ``seconds``; the control messages then tell what happened.
        """
        words, ticket = self._words, self._ticket
        now = time.monotonic_ns()
        deadline, listen = now + int(seconds * 1e9), now + _DEAF_NS
        while True:
            before = now
            for _ in range(_PEEKS):
                if words[word] == ticket:
                    now = time.monotonic_ns()
                    return Moment(now, now - before)
            now = time.monotonic_ns()
            if now > listen:
                if spoke() or now > deadline:
                    return Moment(now, 0)
                listen = now + _DEAF_NS

    def close(self) -> None:
        """Release page and descriptor; may be called twice."""
        if self.fd >= 0:
            self._words.release()
            self._memory.close()
            os.close(self.fd)
            self.fd = -1


class RunnerPage:
    """The runner's end: maps the page and closes its descriptor. Raises MachineFault."""

    def __init__(self, fd: int) -> None:
        try:
            self._memory = mmap.mmap(fd, os.fstat(fd).st_size)
        except (OSError, ValueError) as error:
            raise MachineFault(f"the gate's page cannot be mapped: {error}") from error
        finally:
            os.close(fd)
        self._words = memoryview(self._memory)[:WORDS].cast("I")

    @property
    def memory(self) -> mmap.mmap:
        """The whole page."""
        return self._memory

    def kernels(self) -> bytes:
        """The source of the kernels, which ends with a zero byte."""
        return self._memory[WORDS:]

    def idle(self, ticket: int) -> None:
        """Report that the device is idle after the batch with this ticket."""
        self._words[IDLE] = ticket
