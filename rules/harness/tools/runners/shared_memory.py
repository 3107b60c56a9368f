"""The memory of the shared buffers: memory files, or a device's memory."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from base.program import Program
from gpu.memory import DeviceMemory
from torch import Tensor

_F_ADD_SEALS = 1033
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW, _SEAL_FUTURE_WRITE = 1, 2, 4, 16
_DEVICE_PAGE = 64 << 10


class Memory(Protocol):
    """Memory that another process also maps, through its descriptor."""

    @property
    def fd(self) -> int:
        """The descriptor to lend."""

    @property
    def size(self) -> int:
        """Bytes of all of it."""

    def flat(self) -> Tensor:
        """All bytes: uint8 [size]."""

    def close(self) -> None:
        """Release the descriptor; the memory is freed with the last mapping."""


@dataclass(frozen=True)
class Medium:
    """One kind of memory.

    Attributes:
        page: the alignment of tensors and the size of a guard, in bytes.
        lead: guard pages before an output: two if the page before them cannot be taken from the
            runner.
        allocate: returns memory of at least this many bytes; once sealed, it cannot be mapped
            writable.
    """

    page: int
    lead: int
    allocate: Callable[[int, bool], Memory]


class File:
    """A memfd of fixed size, and this process's mapping of it."""

    def __init__(self, size: int, *, sealed: bool) -> None:
        self.size = size
        self.fd, self._memory = shared_file(size, sealed=sealed)

    def flat(self) -> Tensor:
        """All bytes: uint8 [size]."""
        return torch.frombuffer(self._memory, dtype=torch.uint8)

    def close(self) -> None:
        """Release the descriptor; may be called twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def shared_file(size: int, *, sealed: bool) -> tuple[int, mmap.mmap]:
    """A memfd of fixed size and the judge's mapping; if sealed, no other mapping is writable."""
    fd = os.memfd_create("kabuild", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    memory = mmap.mmap(fd, size)
    seals = _SEAL_SHRINK | _SEAL_GROW | _SEAL_SEAL
    fcntl.fcntl(fd, _F_ADD_SEALS, seals | _SEAL_FUTURE_WRITE if sealed else seals)
    return fd, memory


HOST = Medium(mmap.PAGESIZE, 1, lambda size, sealed: File(size, sealed=sealed))


def _zeroed(memory: DeviceMemory) -> DeviceMemory:
    """As a file is: a driver may hand out what another process has left."""
    memory.flat().zero_()
    return memory


_DEVICE = Medium(_DEVICE_PAGE, 2, lambda size, _: _zeroed(DeviceMemory.allocate(size)))


def of(program: Program) -> Medium:
    """The memory that ``program`` works on."""
    return _DEVICE if program.on_device else HOST
