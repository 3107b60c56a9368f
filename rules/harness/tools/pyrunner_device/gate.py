"""The gate of a Python runner: a kernel that fills the device until the judge opens it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from gpu.driver import DEVICE, accelerator, driver
from gpu.gate_page import ENDED, OPEN, RunnerPage

LIMIT_NS = 20_000_000_000  # longer than a judge waits for anything queued
_MAPPED = 2  # CU_MEMHOSTREGISTER_DEVICEMAP
_THREADS_OF_ALL, _PROCESSORS, _THREADS_OF_BLOCK = 39, 16, 1  # CUdevice_attribute


class Gate:
    """Makes work launched on the current stream between ``shut`` and ``end`` wait for the judge.

    Raises DriverError, and MachineFault if the driver is too old.
    """

    def __init__(self, fd: int) -> None:
        self.page = RunnerPage(fd)
        self._page = _registered(self.page)
        module = ctypes.c_void_p()
        text = self.page.kernels()
        driver().call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(text))
        self._blocker, self._ended = _function(module, b"blocker"), _function(module, b"ended")
        self._threads, self._blocks = shape(_attribute)

    def shut(self, ticket: int) -> None:
        """Fill the device before anything that is launched from now on."""
        word, number = ctypes.c_uint64(self._page + 4 * OPEN), ctypes.c_uint32(ticket)
        limit = ctypes.c_uint64(LIMIT_NS)
        _launch(self._blocker, self._blocks, self._threads, (word, number, limit))

    def end(self, ticket: int) -> None:
        """Queue the report that the device has finished everything launched so far."""
        word, number = ctypes.c_uint64(self._page + 4 * ENDED), ctypes.c_uint32(ticket)
        _launch(self._ended, 1, 1, (word, number))


def _function(module: ctypes.c_void_p, name: bytes) -> ctypes.c_void_p:
    found = ctypes.c_void_p()
    driver().call("cuModuleGetFunction", ctypes.byref(found), module, name)
    return found


def _launch(function: ctypes.c_void_p, blocks: int, threads: int, values: tuple[Any, ...]) -> None:
    stream = ctypes.c_void_p(accelerator().current_stream().cuda_stream)
    places = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    shape = (blocks, 1, 1, threads, 1, 1)
    driver().call("cuLaunchKernel", function, *shape, 0, stream, places, None)


def shape(attribute: Callable[[int], int]) -> tuple[int, int]:
    """Threads per block, and blocks, that leave no thread free on any multiprocessor."""
    room, most = attribute(_THREADS_OF_ALL), attribute(_THREADS_OF_BLOCK)
    each = next(n for n in range(1, room + 1) if room % n == 0 and room // n <= most)
    return room // each, each * attribute(_PROCESSORS)


def _attribute(number: int) -> int:
    value = ctypes.c_int(0)
    driver().call("cuDeviceGetAttribute", ctypes.byref(value), number, DEVICE)
    return value.value


def _registered(page: RunnerPage) -> int:
    """The device's address of the page's first word."""
    here = ctypes.addressof(ctypes.c_char.from_buffer(page.memory))
    size = ctypes.c_size_t(len(page.memory))
    driver().call("cuMemHostRegister_v2", ctypes.c_void_p(here), size, _MAPPED)
    there = ctypes.c_ulonglong(0)
    driver().call("cuMemHostGetDevicePointer_v2", ctypes.byref(there), ctypes.c_void_p(here), 0)
    return there.value
