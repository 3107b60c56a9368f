"""The state of the device while it is measured: clocks, what slows them down, heat, power."""

from __future__ import annotations

import ctypes
from functools import cache

from gpu.driver import DEVICE, DriverError, driver

_LIBRARY = "libnvidia-ml.so.1"
_SM_CLOCK, _MEMORY_CLOCK, _ON_GPU = 1, 2, 0
_BUS_ID_BYTES = 32


def reading() -> dict[str, int]:
    """What the driver says now; empty where its management library is not there.

    ``sm_mhz``, ``memory_mhz``, ``celsius``, ``milliwatts`` and ``slowed``, the bits of
    ``nvmlClocksEventReasons``: 1 is idle, 4 the power cap, 8 and above are slowdowns.
    """
    found = _handle()
    if found is None:
        return {}
    library, handle = found
    made: dict[str, int] = {}
    for name, function, arguments in (
        ("sm_mhz", "nvmlDeviceGetClockInfo", (_SM_CLOCK,)),
        ("memory_mhz", "nvmlDeviceGetClockInfo", (_MEMORY_CLOCK,)),
        ("celsius", "nvmlDeviceGetTemperature", (_ON_GPU,)),
        ("milliwatts", "nvmlDeviceGetPowerUsage", ()),
        ("slowed", "nvmlDeviceGetCurrentClocksThrottleReasons", ()),
    ):
        value = ctypes.c_ulonglong(0)
        if not getattr(library, function)(handle, *arguments, ctypes.byref(value)):
            made[name] = value.value
    return made


@cache
def _handle() -> tuple[ctypes.CDLL, ctypes.c_void_p] | None:
    """The library, and its name for the device of this process."""
    bus = ctypes.create_string_buffer(_BUS_ID_BYTES)
    handle = ctypes.c_void_p()
    try:
        library = ctypes.CDLL(_LIBRARY)
        driver().call("cuDeviceGetPCIBusId", bus, _BUS_ID_BYTES, DEVICE)
    except (OSError, DriverError):
        return None
    if library.nvmlInit_v2():
        return None
    if library.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(handle)):
        return None
    return library, handle
