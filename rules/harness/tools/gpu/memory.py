"""Device memory that two processes share: allocated by the judge, lent to a runner.

An allocation of CUDA's virtual memory interface, or HIP's, has a file descriptor. A process
that receives it over a socket maps the same memory, from any namespace.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any

import torch
from torch import Tensor

from gpu.driver import DEVICE, accelerator, chosen, driver

_PINNED, _POSIX_DESCRIPTOR, _ON_DEVICE, _READ_WRITE = 1, 1, 1, 3
_Address = ctypes.c_ulonglong
_Handle = ctypes.c_ulonglong


class _Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class DeviceMemory:
    """One allocation, mapped into this process for as long as this object or a tensor lives.

    Attributes:
        size: bytes, a multiple of the device's mapping granularity.
        fd: the descriptor to lend; -1 once closed, and if the memory was adopted.
    """

    def __init__(self, handle: _Handle, size: int, fd: int) -> None:
        self.size = size
        self.fd = fd
        self._address = _map(handle, size)
        self._end = weakref.finalize(self, _unmap, self._address, size)
        self._end.atexit = False  # the driver may be gone by then, and the memory with it

    @classmethod
    def allocate(cls, size: int) -> DeviceMemory:
        """Allocate at least ``size`` bytes of the device. Raises DriverError."""
        wanted = _properties()
        whole = -(-size // granularity()) * granularity()
        handle, fd = _Handle(0), ctypes.c_int(-1)
        driver().call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(whole), wanted, _flags())
        try:
            driver().call(
                "cuMemExportToShareableHandle",
                ctypes.byref(fd),
                handle,
                _POSIX_DESCRIPTOR,
                _flags(),
            )
            return cls(handle, whole, fd.value)
        finally:
            driver().call("cuMemRelease", handle)  # descriptor and mapping keep the memory

    @classmethod
    def adopt(cls, fd: int, size: int) -> DeviceMemory:
        """Map the memory behind a descriptor, and close the descriptor. Raises DriverError."""
        handle = _Handle(0)
        try:
            driver().call(
                "cuMemImportFromShareableHandle",
                ctypes.byref(handle),
                driver().descriptor(fd),
                _POSIX_DESCRIPTOR,
            )
        finally:
            os.close(fd)
        try:
            return cls(handle, size, -1)
        finally:
            driver().call("cuMemRelease", handle)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The description by which torch and others find the bytes."""
        return {
            "shape": (self.size,),
            "typestr": "|u1",
            "data": (self._address.value, False),
            "version": 3,
        }

    def flat(self) -> Tensor:
        """All bytes: uint8 [size], on the device."""
        return torch.as_tensor(self, device=torch.device(chosen().torch_device, DEVICE))

    def close(self) -> None:
        """Release the descriptor; may be called twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def granularity() -> int:
    """The bytes that the device maps at once; usually 2 MiB. Raises NoDevice."""
    size = ctypes.c_size_t(0)
    driver().call("cuMemGetAllocationGranularity", ctypes.byref(size), _properties(), 0)
    return size.value


def _properties() -> Any:
    location = _Location(_ON_DEVICE, DEVICE)
    return ctypes.byref(_Properties(_PINNED, _POSIX_DESCRIPTOR, location))


def _flags() -> ctypes.c_ulonglong:
    return ctypes.c_ulonglong(0)  # no flags are defined


def _map(handle: _Handle, size: int) -> _Address:
    address, length = _Address(0), ctypes.c_size_t(size)
    none = ctypes.c_size_t(0)
    driver().call("cuMemAddressReserve", ctypes.byref(address), length, none, _Address(0), _flags())
    access = _Access(_Location(_ON_DEVICE, DEVICE), _READ_WRITE)
    try:
        driver().call("cuMemMap", address, length, none, handle, _flags())
        driver().call("cuMemSetAccess", address, length, ctypes.byref(access), ctypes.c_size_t(1))
    except BaseException:
        driver().call("cuMemAddressFree", address, length)
        raise
    return address


def _unmap(address: _Address, size: int) -> None:
    length = ctypes.c_size_t(size)
    accelerator().synchronize()  # no work on it may still be running
    driver().call("cuMemUnmap", address, length)
    driver().call("cuMemAddressFree", address, length)
