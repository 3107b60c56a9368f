"""The few functions of CUDA's driver that torch does not offer, through ctypes.

The driver is loaded on first use and never before: a process that has loaded it can no longer
fork one that uses the device.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

from base.program import MachineFault

_LIBRARY = "libcuda.so.1"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_CHOSEN = "KABUILD_DEVICE"
DEVICE = 0  # the only one that this process is shown
OUT_OF_MEMORY = 2


class NoDevice(MachineFault):
    """There is no device that can be used, so nothing was judged."""

    def __init__(self, why: str) -> None:
        super().__init__(f"NO_DEVICE: no cuda device on this machine: {why}")


class DriverError(MachineFault):
    """A call of the driver failed.

    Attributes:
        number: its ``CUresult``.
    """

    def __init__(self, function: str, number: int) -> None:
        super().__init__(f"{function} returned CUDA error {number}")
        self.number = number


class Driver:
    """The loaded and initialised driver."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, function: str, *arguments: Any) -> None:
        """Call one function. Raises DriverError."""
        number = getattr(self._library, function)(*arguments)
        if number:
            raise DriverError(function, number)


def choose_device() -> None:
    """Show this process and its children the device that the action was given, and no other.

    Without ``KABUILD_DEVICE`` in the environment nothing changes. To be called before anything
    of CUDA is.
    """
    chosen = os.environ.get(_CHOSEN)
    if chosen is not None:
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # how nvidia-smi counts them
        os.environ[_VISIBLE] = chosen


@cache
def driver() -> Driver:
    """The driver of this process. Raises NoDevice where there is none, or nothing to drive."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        raise NoDevice(f"{_LIBRARY} is not installed") from None
    loaded = Driver(library)
    count = ctypes.c_int(0)
    try:
        loaded.call("cuInit", 0)
        loaded.call("cuDeviceGetCount", ctypes.byref(count))
    except DriverError as error:
        raise NoDevice(str(error)) from None
    if not count.value:
        raise NoDevice("the driver shows none")
    return loaded
