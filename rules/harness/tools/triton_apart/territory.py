"""The addresses of tensors: reserved in both halves of a runner, with memory in only one.

One stretch of the address space is reserved before the process is split. The half that runs kernels
maps memory into it. The half with the candidate's module never does: its tensors have addresses,
shapes and strides, but reading or writing there faults.

    the judge's buffers | memory that the candidate allocates
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from triton_cpu.bounds import Allocation

_ARENAS = 16 << 30
_HEAP = 16 << 30
_READ, _WRITE = 1, 2
_SHARED, _PRIVATE, _FIXED, _ANONYMOUS, _NORESERVE = 1, 2, 0x10, 0x20, 0x4000
_MADV_POPULATE_WRITE = 23
_FAILED = ctypes.c_void_p(-1).value
_STEP = 16 << 20
_ALIGNMENT = 512  # as device allocators have it

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Territory:
    """The reserved addresses, as the process that runs kernels uses them.

    Attributes:
        heap: the first address of the candidate's allocations.
        committed: the first address of the heap that has no memory yet.
    """

    def __init__(self) -> None:
        flags = _PRIVATE | _ANONYMOUS | _NORESERVE
        self._start = _mapped(None, _ARENAS + _HEAP, 0, flags)
        self._free = self._start
        self.heap = self.committed = self._start + _ARENAS

    def map_file(self, fd: int) -> int:
        """Map all of a shared file; returns its address, closes ``fd``. Raises MemoryError."""
        size = os.fstat(fd).st_size
        if self._free + size > self.heap:
            raise MemoryError("can't allocate memory for the buffers of the config")
        address = _mapped(self._free, size, _READ | _WRITE, _SHARED | _FIXED, fd)
        os.close(fd)
        self._free += -(-size // _STEP) * _STEP
        _libc.madvise(address, size, _MADV_POPULATE_WRITE)
        return address

    def unmap_files(self) -> None:
        """Unmap the buffers of the last config."""
        flags = _PRIVATE | _ANONYMOUS | _NORESERVE | _FIXED
        if self._free > self._start:
            _mapped(self._start, self._free - self._start, 0, flags)
        self._free = self._start

    def allocated(self) -> Allocation:
        """The part of the heap that has memory."""
        return Allocation("", self.heap, self.committed - self.heap)

    def commit(self, end: int) -> None:
        """Give the heap memory up to the address ``end``. Raises MemoryError."""
        wanted = self.heap - (self.heap - end) // _STEP * _STEP
        if wanted <= self.committed:
            return
        size = wanted - self.committed
        if wanted > self.heap + _HEAP or _libc.mprotect(self.committed, size, _READ | _WRITE):
            raise MemoryError("can't allocate memory")
        self.committed = wanted


class Heap:
    """The candidate's allocations, as its own process records them.

    Args:
        start: the heap's first address.
        commit: requests memory for the heap up to an address.
    """

    def __init__(self, start: int, commit: Callable[[int], None]) -> None:
        self._next = self._committed = start
        self._end = start + _HEAP
        self._commit = commit
        self._unused: dict[int, list[int]] = {}

    def flat(self, size: int) -> Tensor:
        """Allocate ``size`` bytes: uint8 [size]. Raises MemoryError."""
        room = -(-size // _ALIGNMENT) * _ALIGNMENT
        unused = self._unused.get(room)
        address = unused.pop() if unused else self._fresh(room)
        block = _block(size).from_address(address)
        block.release = lambda: self._unused.setdefault(room, []).append(address)
        return torch.frombuffer(block, dtype=torch.uint8)

    def _fresh(self, room: int) -> int:
        address = self._next
        if address + room > self._end:
            raise MemoryError("can't allocate memory")
        if address + room > self._committed:
            end = min(address + -(-room // _STEP) * _STEP, self._end)
            self._commit(end)
            self._committed = end
        self._next += room
        return address


def flat(address: int, size: int) -> Tensor:
    """The bytes at an address as a tensor that does not own them: uint8 [size], size at least 1."""
    return torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=torch.uint8)


@lru_cache(maxsize=4096)
def _block(size: int) -> Any:
    """A buffer type of this size; its objects call ``release`` when they are no longer used."""
    return type("Block", (ctypes.c_char * size,), {"__del__": lambda block: block.release()})


def _mapped(address: int | None, size: int, protection: int, flags: int, fd: int = -1) -> int:
    found = _libc.mmap(address, size, protection, flags, fd, 0)
    if found == _FAILED:
        raise MemoryError(f"can't allocate memory: {os.strerror(ctypes.get_errno())}")
    return int(found)
