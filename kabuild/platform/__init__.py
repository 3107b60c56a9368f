"""Layer 2a: the public API for platforms. A platform imports from here and from nothing else.

A platform is a directory ``toolchains/platforms/NAME``:

    platform.toml         its names, and facts about its devices for the judge
    architectures.toml    a table for each architecture
    devices.py            finds, watches and shows its devices; absent if it has none

``devices.py`` ends with ``DRIVER``, a ``Driver``::

    from kabuild.platform import Device, Devices, Exposure, Remark

    class Boards:
        def probe(self) -> Devices:
            return Devices("board", (Device("board", 0, "BOARD-1", "b1"),))

        def lost(self, device: Device) -> str:
            return ""

        def users(self, device: Device) -> tuple[int, ...]:
            return ()

        def exposure(self, device: Device) -> Exposure:
            return Exposure(mounts=("/dev/board0",))

        def remarks(self) -> tuple[Remark, ...]:
            return ()

    DRIVER = Boards()

It is imported where devices are asked for, and for no other platform.
"""

from kabuild.model.device import Device, Devices, Exposure
from kabuild.platform.driver import CHOSEN, Driver, Remark, existing, missing, unreadable
from kabuild.platform.libraries import Library, find_library

__all__ = [
    "CHOSEN",
    "Device",
    "Devices",
    "Driver",
    "Exposure",
    "Library",
    "Remark",
    "existing",
    "find_library",
    "missing",
    "unreadable",
]
