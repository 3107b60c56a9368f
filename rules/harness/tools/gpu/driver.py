"""The few functions of CUDA's driver, or AMD's HIP, that torch does not offer, through ctypes.

HIP has them under names of its own, with the same arguments, values and layouts. They are called
here by CUDA's names. That they are there, and what they say where no device is, has been tried
with AMD's library; nothing here has run on an AMD device yet.

The library is loaded on first use and never before: a process that has loaded it can no longer
fork one that uses the device.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from base.program import MachineFault

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_HIDDEN_BY_AMD = "ROCR_VISIBLE_DEVICES"
_CHOSEN = "KABUILD_DEVICE"
DEVICE = 0  # the only one that this process is shown
OUT_OF_MEMORY = 2
_DESCRIPTORS_BY_VALUE = 70100000


@dataclass(frozen=True)
class Vendor:
    """Whose device it is: the platform, his library's names, newest first, and how he spells."""

    platform: str
    libraries: tuple[str, ...]
    prefix: str
    others: Mapping[str, str]
    """Functions that are called otherwise."""

    def spell(self, function: str) -> str:
        """His name of a function that CUDA's driver calls ``function``."""
        return self.others.get(function, self.prefix + function.removeprefix("cu"))


CUDA = Vendor("cuda", ("libcuda.so.1",), "cu", {})
ROCM = Vendor(
    "rocm",
    # Where torch brings one, that is already loaded, and found by its name.
    ("libamdhip64.so.7", "libamdhip64.so.6"),
    "hip",
    {
        "cuDeviceGetCount": "hipGetDeviceCount",
        "cuDriverGetVersion": "hipRuntimeGetVersion",
        "cuMemcpy2DAsync_v2": "hipMemcpyParam2DAsync",
    },
)


class NoDevice(MachineFault):
    """There is no device that can be used, so nothing was judged."""

    def __init__(self, platform: str, why: str) -> None:
        super().__init__(f"NO_DEVICE: no {platform} device on this machine: {why}")


class DriverError(MachineFault):
    """A call of the driver failed.

    Attributes:
        number: its ``CUresult`` or ``hipError_t``.
    """

    def __init__(self, function: str, number: int) -> None:
        super().__init__(f"{function} returned error {number}")
        self.number = number


class Driver:
    """The loaded and initialised driver."""

    def __init__(self, library: ctypes.CDLL, vendor: Vendor) -> None:
        self._library = library
        self._vendor = vendor

    def call(self, function: str, *arguments: Any) -> None:
        """Call one function by CUDA's name of it. Raises DriverError, MachineFault if too old."""
        name = self._vendor.spell(function)
        try:
            called = getattr(self._library, name)
        except AttributeError:
            raise MachineFault(f"the driver of this machine is too old: no {name}") from None
        number = called(*arguments)
        if number:
            raise DriverError(name, number)

    def descriptor(self, fd: int) -> Any:
        """A file descriptor as ``cuMemImportFromShareableHandle`` takes it.

        HIP before 7.1 wants to be told where it is written.
        """
        if self._vendor is ROCM:
            version = ctypes.c_int(0)
            self.call("cuDriverGetVersion", ctypes.byref(version))
            if version.value < _DESCRIPTORS_BY_VALUE:
                return ctypes.byref(ctypes.c_int(fd))
        return ctypes.c_void_p(fd)


def choose_device() -> None:
    """Show this process and its children the device that the action was given, and no other.

    Without ``KABUILD_DEVICE`` in the environment nothing changes, nor where AMD's own variable
    hides the other devices already. To be called before anything of CUDA is.
    """
    chosen = os.environ.get(_CHOSEN)
    if chosen is not None and _HIDDEN_BY_AMD not in os.environ:
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # how nvidia-smi counts them
        os.environ[_VISIBLE] = chosen


@cache
def driver() -> Driver:
    """The driver of this process, for the devices that torch is built for.

    Raises NoDevice where there is none, or nothing to drive.
    """
    import torch

    return open_driver(ROCM if torch.version.hip else CUDA)


def open_driver(vendor: Vendor) -> Driver:
    """Load and start a vendor's driver. Raises NoDevice where that leads to no device."""
    loaded = Driver(_library(vendor), vendor)
    count = ctypes.c_int(0)
    try:
        loaded.call("cuInit", 0)
        loaded.call("cuDeviceGetCount", ctypes.byref(count))
    except DriverError as error:
        raise NoDevice(vendor.platform, str(error)) from None
    if not count.value:
        raise NoDevice(vendor.platform, "the driver shows none")
    return loaded


def _library(vendor: Vendor) -> ctypes.CDLL:
    for name in vendor.libraries:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise NoDevice(vendor.platform, f"{vendor.libraries[0]} is not installed")
