"""The few functions of a device's driver that torch does not offer, through ctypes.

Code here calls them by the names of CUDA's driver. Other drivers have them under their own names,
with the same arguments, values and layouts (``base/device_platform.py``).

The library is loaded on first use and never earlier: a process that has loaded it can no longer
fork one that uses the device.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from base.device_platform import DevicePlatform, DriverLibrary, device_platform
from base.program import MachineFault

DEVICE = 0  # the only device that this process sees
OUT_OF_MEMORY = 2


class NoDevice(MachineFault):
    """No usable device was found, so nothing was judged."""

    def __init__(self, platform: str, why: str) -> None:
        super().__init__(f"NO_DEVICE: no {platform} device on this machine: {why}")


class DriverError(MachineFault):
    """A call of the driver failed.

    Attributes:
        number: the driver's error code, such as a ``CUresult``.
    """

    def __init__(self, function: str, number: int) -> None:
        super().__init__(f"{function} returned error {number}")
        self.number = number


class Driver:
    """The loaded and initialised driver."""

    def __init__(self, loaded: ctypes.CDLL, library: DriverLibrary) -> None:
        self._loaded = loaded
        self._library = library

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function by its CUDA name. Raises DriverError, MachineFault if too old."""
        name = self._library.spell(function)
        try:
            called = getattr(self._loaded, name)
        except AttributeError:
            raise MachineFault(f"the driver of this machine is too old: it lacks {name}") from None
        number = called(*arguments)
        if number:
            raise DriverError(name, number)

    def descriptor(self, fd: int) -> Any:
        """A file descriptor as this version's ``cuMemImportFromShareableHandle`` takes it."""
        if self._library.descriptors_by_value:
            version = ctypes.c_int(0)
            self.call("cuDriverGetVersion", ctypes.byref(version))
            if version.value < self._library.descriptors_by_value:
                return ctypes.byref(ctypes.c_int(fd))
        return ctypes.c_void_p(fd)


_CHOSEN: list[DevicePlatform] = []


def choose(platform: str) -> DevicePlatform:
    """Make this process use the devices of ``platform``; loads nothing yet."""
    _CHOSEN[:] = [device_platform(platform)]
    return chosen()


def chosen() -> DevicePlatform:
    """The platform chosen for this process."""
    (platform,) = _CHOSEN
    return platform


def accelerator() -> Any:
    """PyTorch's module for the devices of this process, such as ``torch.cuda``."""
    import torch

    return torch.get_device_module(chosen().torch_device)


@cache
def driver() -> Driver:
    """The driver of this process. Raises NoDevice if there is no driver or no device."""
    return open_driver(chosen())


def open_driver(platform: DevicePlatform) -> Driver:
    """Load and start a platform's driver. Raises NoDevice if that does not give a device."""
    loaded = Driver(_library(platform), platform.driver)
    count = ctypes.c_int(0)
    try:
        loaded.call("cuInit", 0)
        loaded.call("cuDeviceGetCount", ctypes.byref(count))
    except DriverError as error:
        raise NoDevice(platform.name, str(error)) from None
    if not count.value:
        raise NoDevice(platform.name, "the driver shows none")
    return loaded


def _library(platform: DevicePlatform) -> ctypes.CDLL:
    for name in platform.driver.names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise NoDevice(platform.name, f"{platform.driver.names[0]} is not installed")
