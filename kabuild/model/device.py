"""Accelerators of this machine, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """One accelerator, as the driver describes it.

    Attributes:
        platform: ``cuda`` or ``rocm``.
        index: its number, as the vendor's own tools count.
        uuid: its name among all devices; what processes exclude each other by.
        arch: what code has to be compiled for, such as ``sm_90``.
        properties: what else can change times (model, memory, driver, clocks, power cap).
        problem: why no action can run on it; empty where actions can.
        nodes: its device files, its own and those of the driver.
    """

    platform: str
    index: int
    uuid: str
    arch: str
    properties: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    nodes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What people call it: ``cuda:0``."""
        return f"{self.platform}:{self.index}"

    @property
    def lease(self) -> str:
        """What processes exclude each other by, whatever number it has: ``cuda-GPU-...``."""
        return f"{self.platform}-{self.uuid}"

    @property
    def model(self) -> str:
        """What the vendor calls it: ``NVIDIA H200``."""
        return dict(self.properties).get("device", "")


@dataclass(frozen=True)
class Devices:
    """The devices of one platform: all that there are, or those that a build may use.

    Attributes:
        platform: ``cuda`` or ``rocm``; ``cpu`` has none.
        found: by index.
        absent: why there are none; empty where there are.
        notes: what a user should know of those that were left out.
    """

    platform: str = "cpu"
    found: tuple[Device, ...] = ()
    absent: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exposure:
    """What an action's sandbox has to show so that it can use a device.

    Attributes:
        mounts: device files and driver libraries, by their paths on the host.
        env: the same for all devices of a platform, so that warm processes serve them all.
        selection: variables that tell this device from the others.
    """

    mounts: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    selection: tuple[tuple[str, str], ...] = ()
