"""The accelerators of this machine: found, chosen, watched, and shown to sandboxes.

    vendor = vendor_of("cuda")
    platform, devices = choose(Platform.parse("cuda"), vendor.probe(), only=(0, 2))
    with DevicePool.of(devices).using(lease, timed=True) as exposure:
        ...

One file for each vendor. Nothing here computes on a device, and nothing is loaded for a
platform that was not asked for.
"""

from __future__ import annotations

from kabuild.execution.devices.choice import choose
from kabuild.execution.devices.drivers import vendor_of
from kabuild.execution.devices.pool import DevicePool
from kabuild.execution.devices.vendor import Vendor

__all__ = ["DevicePool", "Vendor", "choose", "vendor_of"]
