"""A process with the launch filter before the double: what tests have it do, and what it sees.

Loaded by tests in a process of its own, since a filter that is in force stays so.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from runners.launch_pages import LaunchPages

NOT_PERMITTED = 800
_GRID = (1,) * 7


class Filtered:
    """The libraries of this process, and the judge's pages."""

    def __init__(self, front: Path) -> None:
        self.front = ctypes.CDLL(str(front))
        self.driver = ctypes.CDLL("libkabuild-driver.so", mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        self.pages: LaunchPages | None = None
        self.kept: list[object] = []

    def filter(self, pages: LaunchPages, candidate: str) -> None:
        """Put the filter in force."""
        orders, record = (os.dup(fd) for fd in pages.fds)
        assert self.front.kabuild_filter_launches(orders, record, candidate.encode()) == 0
        pages.check_in_force()
        self.pages = pages

    def in_memory(self, image: bytes) -> ctypes.c_void_p:
        """The address of an image that no file holds."""
        memory = ctypes.create_string_buffer(image, len(image))
        self.kept.append(memory)
        return ctypes.c_void_p(ctypes.addressof(memory))

    def launched(self) -> int:
        """How many launches have come to the driver."""
        return int(self.driver.double_launched())


class Process(Filtered):
    """With CUDA's driver."""

    def module(self, image: bytes) -> ctypes.c_void_p:
        """A module of an image in this process's memory, as Triton loads its own."""
        module = ctypes.c_void_p()
        assert self.front.cuModuleLoadData(ctypes.byref(module), self.in_memory(image)) == 0
        return module

    def library(self, address: int) -> ctypes.c_void_p:
        """A library of an image at an address, as CUDA's runtime loads those of libraries."""
        made = ctypes.c_void_p()
        nothing = [None] * 3
        options = (nothing[0], nothing[1], 0, nothing[2], None, 0)
        image = ctypes.c_void_p(address)
        assert self.front.cuLibraryLoadData(ctypes.byref(made), image, *options) == 0
        return made

    def function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        """A function of a module."""
        made = ctypes.c_void_p()
        assert self.front.cuModuleGetFunction(ctypes.byref(made), module, name.encode()) == 0
        return made

    def kernel(self, library: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        """A kernel of a library."""
        made = ctypes.c_void_p()
        assert self.front.cuLibraryGetKernel(ctypes.byref(made), library, name.encode()) == 0
        return made

    def launch(self, kernel: ctypes.c_void_p, blocks: int = 1) -> int:
        """Launch a kernel; the driver's error."""
        grid = (blocks, *_GRID[1:])
        return int(self.front.cuLaunchKernel(kernel, *grid, None, None, None))


class HipProcess(Filtered):
    """With HIP's runtime."""

    def __init__(self, front: Path) -> None:
        super().__init__(front)
        self._register = self.front["__hipRegisterFatBinary"]
        self._register.restype = ctypes.c_void_p

    def module(self, image: bytes | int) -> ctypes.c_void_p:
        """A module of an image in this process's memory, or at an address of a file's."""
        at = ctypes.c_void_p(image) if isinstance(image, int) else self.in_memory(image)
        module = ctypes.c_void_p()
        assert self.front.hipModuleLoadDataEx(ctypes.byref(module), at, 0, None, None) == 0
        return module

    def function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        """A function of a module."""
        made = ctypes.c_void_p()
        assert self.front.hipModuleGetFunction(ctypes.byref(made), module, name.encode()) == 0
        return made

    def register(self, wrapper: int, *kernels: tuple[int, str]) -> ctypes.c_void_p:
        """Register a fat binary and where its kernels stand, as a library that is loaded does."""
        binary = ctypes.c_void_p(self._register(ctypes.c_void_p(wrapper)))
        for place, name in kernels:
            text = ctypes.create_string_buffer(name.encode())
            self.kept.append(text)
            self.front["__hipRegisterFunction"](
                binary, ctypes.c_void_p(place), text, text, -1, None, None, None, None, None
            )
        return binary

    def launch(self, kernel: ctypes.c_void_p, blocks: int = 1) -> int:
        """Launch a function of a module; the runtime's error."""
        grid = (blocks, *_GRID[1:])
        return int(self.front.hipModuleLaunchKernel(kernel, *grid, None, None, None))

    def launch_at(self, place: int, blocks: int = 1) -> int:
        """Launch a kernel by where it stands, as ``<<<>>>`` does."""
        at, grid = ctypes.c_void_p(place), Dim3(blocks, 1, 1)
        return int(self.front.hipLaunchKernel(at, grid, Dim3(1, 1, 1), None, 0, None))


class Dim3(ctypes.Structure):
    """HIP's ``dim3``, which is passed by value."""

    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


def symbol_of(address: int | None) -> str:
    """Which file has the function at an address."""
    assert address is not None
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, _, high = line.split()[0].partition("-")
        if int(low, 16) <= address < int(high, 16):
            return line.split()[-1].rpartition("/")[2]
    print(f"no file has {address:#x}", file=sys.stderr)
    raise AssertionError(address)
