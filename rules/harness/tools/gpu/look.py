"""Reads a few bytes of every row of device memory, within microseconds.

A kernel has to wait until the device switches from the runner's context to this one, some 400 us. A
copy to the host uses a separate engine, which does not wait: it shows the memory as it was when the
runner reported completion.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from gpu.driver import accelerator, driver

WIDTH = 16  # bytes of a place
_ON_HOST, _ON_DEVICE = 1, 2  # CUmemorytype
_MOST_PITCH = (1 << 31) - 1


class _Copy(ctypes.Structure):
    """CUDA_MEMCPY2D, and hip_Memcpy2D."""

    _fields_ = (
        ("source_x", ctypes.c_size_t),
        ("source_y", ctypes.c_size_t),
        ("source_kind", ctypes.c_int),
        ("source_host", ctypes.c_void_p),
        ("source_device", ctypes.c_ulonglong),
        ("source_array", ctypes.c_void_p),
        ("source_pitch", ctypes.c_size_t),
        ("target_x", ctypes.c_size_t),
        ("target_y", ctypes.c_size_t),
        ("target_kind", ctypes.c_int),
        ("target_host", ctypes.c_void_p),
        ("target_device", ctypes.c_ulonglong),
        ("target_array", ctypes.c_void_p),
        ("target_pitch", ctypes.c_size_t),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class Look:
    """Places in the rows of ``grid``, uint8 [rows, bytes] on a device, ``WIDTH`` bytes each."""

    def __init__(self, grid: Tensor, places: Sequence[int]) -> None:
        self._places = tuple(places)
        rows, stride = grid.shape
        self._rows = rows if stride <= _MOST_PITCH else 1
        # Only the last row is read if a copy cannot step over rows of this length.
        self._first = rows - self._rows
        shape = (len(self._places), self._rows, WIDTH)
        self._seen = torch.empty(shape, dtype=torch.uint8, device="cpu", pin_memory=True)
        self._stream = accelerator().Stream()
        self._copies = [self._copy(grid, index, place) for index, place in enumerate(self._places)]

    def take(self) -> None:
        """Copy the bytes to the host, and wait for them."""
        stream = ctypes.c_void_p(self._stream.cuda_stream)
        for copy in self._copies:
            driver().call("cuMemcpy2DAsync_v2", ctypes.byref(copy), stream)
        self._stream.synchronize()

    def agrees(self, grid: Tensor) -> bool:
        """Whether these places of ``grid`` hold the bytes that were copied."""
        rows = grid[self._first :]
        for place, seen in zip(self._places, self._seen, strict=True):
            if not torch.equal(rows[:, place : place + WIDTH].cpu(), seen):
                return False
        return True

    def _copy(self, grid: Tensor, index: int, place: int) -> _Copy:
        stride = grid.stride(0)
        return _Copy(
            source_kind=_ON_DEVICE,
            source_device=grid.data_ptr() + self._first * stride + place,
            source_pitch=stride if self._rows > 1 else WIDTH,
            target_kind=_ON_HOST,
            target_host=self._seen[index].data_ptr(),
            target_pitch=WIDTH,
            width=WIDTH,
            height=self._rows,
        )
