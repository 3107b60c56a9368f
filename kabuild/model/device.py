"""Accelerators of this machine, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """One accelerator, as the driver describes it.

    Attributes:
        platform: the name of its platform.
        index: its number, as the vendor's own tools count.
        uuid: its unique name, by which processes lock it.
        arch: the architecture to compile for, such as ``sm_90``.
        properties: what else can change times (model, memory, driver, clocks, power cap).
        problem: why no action can run on it; empty if actions can.
        nodes: its device files and those of the driver.
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
        """Its name for people: ``cuda:0``."""
        return f"{self.platform}:{self.index}"

    @property
    def lease(self) -> str:
        """The name of its lock, independent of its number: ``cuda-GPU-...``."""
        return f"{self.platform}-{self.uuid}"

    @property
    def model(self) -> str:
        """The vendor's name: ``NVIDIA H200``."""
        return dict(self.properties).get("device", "")


@dataclass(frozen=True)
class Devices:
    """The devices of one platform: all of them, or those that a build may use.

    Attributes:
        platform: the name of their platform; ``cpu`` has none.
        found: by index.
        absent: why there are none; empty if there are some.
        notes: for users, about devices that were left out.
    """

    platform: str = "cpu"
    found: tuple[Device, ...] = ()
    absent: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exposure:
    """What an action's sandbox exposes so that it can use a device.

    Attributes:
        mounts: device files and driver libraries, by their paths on the host.
        env: the same for all devices of a platform, so that warm processes serve them all.
        selection: variables that tell this device from the others.
    """

    mounts: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    selection: tuple[tuple[str, str], ...] = ()
