"""Runs calls on the host, with shared files and the processor's clock."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import perf_counter_ns

import torch
from torch import Tensor

_MADV_POPULATE_WRITE = 23


def mapped(fd: int, *, writable: bool) -> mmap.mmap:
    """Map all of a shared file; closes ``fd``."""
    protection = mmap.PROT_READ | mmap.PROT_WRITE if writable else mmap.PROT_READ
    memory = mmap.mmap(fd, os.fstat(fd).st_size, mmap.MAP_SHARED, protection)
    os.close(fd)
    if writable:
        with contextlib.suppress(OSError):  # before Linux 5.14 the first call pays instead
            memory.madvise(_MADV_POPULATE_WRITE)
    return memory


class Host:
    """The ``Ground`` of programs for the processor."""

    def shared(self, fd: int, _: int) -> Callable[[int, int, torch.dtype], Tensor]:
        """Return a function for views of the judge's memory behind ``fd``; closes ``fd``."""
        memory = mapped(fd, writable=True)

        def view(first: int, count: int, kind: torch.dtype) -> Tensor:
            if not count:
                return torch.empty(0, dtype=kind)
            return torch.frombuffer(memory, dtype=kind, count=count, offset=first)

        return view

    def own(self, fd: int, _: int) -> Callable[[int, int, torch.dtype], Tensor]:
        """Return a function for copies of what lies behind ``fd``, sealed; closes ``fd``."""
        memory = memoryview(mapped(fd, writable=False))

        def copied(first: int, count: int, kind: torch.dtype) -> Tensor:
            if not count:
                return torch.empty(0, dtype=kind)
            data = bytearray(memory[first : first + count * kind.itemsize])
            return torch.frombuffer(data, dtype=kind)

        return copied

    def hold(self, fd: int) -> bool:
        """Return False: calls on the host cannot be held back. Closes ``fd``."""
        os.close(fd)
        return False

    def queued(self, work: Callable[[], None], _: int) -> int:
        """Not called, because ``hold`` returns False."""
        return self.timed(work)

    def opened(self, _: int) -> int:
        """Not called, because ``hold`` returns False."""
        return 0

    def timed(self, work: Callable[[], None]) -> int:
        """Do the work; returns the time in ns."""
        started = perf_counter_ns()
        work()
        return perf_counter_ns() - started

    def replayed(self, _: Callable[[], None]) -> None:
        """Return None: calls on the host cannot be recorded."""

    def finish(self) -> None:
        """Do nothing: calls on the host are finished when they return."""

    def legal(self, _: dict[str, Tensor]) -> AbstractContextManager[None]:
        """Check nothing: PyTorch checks its own accesses."""
        return contextlib.nullcontext()

    def without_launches(self) -> AbstractContextManager[None]:
        """Suppress nothing: calls on the host launch nothing."""
        return contextlib.nullcontext()

    def reserve(self, _: Callable[[], object]) -> None:
        """Do nothing: the host's allocator needs no preparation."""
