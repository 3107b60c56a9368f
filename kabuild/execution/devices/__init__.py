"""The devices of a build: chosen, shown to sandboxes, and watched.

    platform, devices = choose(spec, asked, driver.probe(), only=(0, 2))
    with DevicePool(devices, driver).using(lease, timed=True) as exposure:
        ...

The driver is the platform's own (``kabuild.platform``). Nothing here computes on a device.
"""

from __future__ import annotations

from kabuild.execution.devices.pool import DevicePool
from kabuild.execution.devices.selection import choose

__all__ = ["DevicePool", "choose"]
