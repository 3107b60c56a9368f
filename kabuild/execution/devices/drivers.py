"""Which driver stands behind which platform."""

from __future__ import annotations

from functools import cache

from kabuild.execution.devices.patience import Patient
from kabuild.execution.devices.vendor import Vendor


@cache
def vendor_of(platform: str) -> Vendor:
    """The driver behind ``cuda`` or ``rocm``."""
    if platform == "cuda":
        from kabuild.execution.devices.nvidia import Nvidia  # ctypes, for those who have one

        return Patient(platform, Nvidia())
    if platform == "rocm":
        from kabuild.execution.devices.amd import Amd

        return Patient(platform, Amd())
    msg = f"platform '{platform}' has no devices"
    raise ValueError(msg)
