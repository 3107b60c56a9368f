"""The device's state during measurements: clocks, throttling, temperature, power."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

from gpu.driver import DEVICE, DriverError, chosen, driver

_BUS_ID_BYTES = 32


def reading() -> Mapping[str, int]:
    """The platform's readings for this process's device; empty if it cannot tell.

    ``sm_mhz``, ``memory_mhz``, ``celsius``, ``milliwatts`` and ``slowed``. In ``slowed``,
    0x1 means idle and 0x4 the power cap; 0x8 and above are slowdowns.
    """
    state = chosen().state
    bus = _bus() if state else b""
    return state(bus) if state and bus else {}


@cache
def _bus() -> bytes:
    """The PCI address of the device; empty if the driver does not tell."""
    bus = ctypes.create_string_buffer(_BUS_ID_BYTES)
    try:
        driver().call("cuDeviceGetPCIBusId", bus, _BUS_ID_BYTES, DEVICE)
    except DriverError:
        return b""
    return bus.value
