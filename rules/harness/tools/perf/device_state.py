"""The state of the device while it is measured: clocks, what slows them down, heat, power."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

from gpu.driver import DEVICE, DriverError, chosen, driver

_BUS_ID_BYTES = 32


def reading() -> Mapping[str, int]:
    """What the platform says of the device of this process; empty where it cannot tell.

    ``sm_mhz``, ``memory_mhz``, ``celsius``, ``milliwatts`` and ``slowed``, whose lowest bits mean:
    1 is idle, 4 the power cap, 8 and above are slowdowns.
    """
    state = chosen().state
    bus = _bus() if state else b""
    return state(bus) if state and bus else {}


@cache
def _bus() -> bytes:
    """The PCI address of the device; empty where the driver does not tell."""
    bus = ctypes.create_string_buffer(_BUS_ID_BYTES)
    try:
        driver().call("cuDeviceGetPCIBusId", bus, _BUS_ID_BYTES, DEVICE)
    except DriverError:
        return b""
    return bus.value
