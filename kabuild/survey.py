"""The platform of a build: the requested one, with this machine's devices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kabuild.base.errors import Reason, UsageError
from kabuild.execution.host import cpu_platform
from kabuild.loading.platform_index import PlatformIndex
from kabuild.model.platform import CPU, Platform

if TYPE_CHECKING:
    from kabuild.execution.devices import DevicePool
    from kabuild.execution.devices.timeout import WithTimeout
    from kabuild.model.device import Device, Devices


def survey(
    platforms: PlatformIndex, asked: Platform, only: Sequence[int] = ()
) -> tuple[Platform, Devices]:
    """The platform with this machine's properties, and the devices that a build may use.

    ``only`` are the numbers of usable devices; empty means all. Only a platform other than ``cpu``
    loads a driver.

    Raises UsageError(UNKNOWN_PLATFORM) for a CPU of another architecture, UsageError(BAD_FLAG) for
    missing devices, InfraError(NO_DEVICE) if neither a device nor the user names the architecture,
    and LoadError(BAD_PLATFORM).
    """
    from kabuild.model.device import Devices

    if asked.name == CPU:
        return _cpu(asked, only), Devices()
    from kabuild.execution.devices import choose

    return choose(platforms.spec(asked.name), asked, probe(platforms, asked.name), only)


def probe(platforms: PlatformIndex, name: str) -> Devices:
    """All devices of a platform; those of unknown architecture are unusable.

    Raises LoadError(BAD_PLATFORM).
    """
    from kabuild.model.device import Devices

    driver = driver_of(platforms, name)
    if driver is None:
        return Devices(name, absent=f"platform {name} has no driver")
    try:
        there = driver.probe()
    except Exception as error:
        raise platforms.failure(name, error) from error
    known = platforms.spec(name).architectures
    found = tuple(_checked(device, known.values()) for device in there.found)
    return replace(there, found=found)


def driver_of(platforms: PlatformIndex, name: str) -> WithTimeout | None:
    """The driver of a platform, with a time limit. Raises as ``probe``."""
    from kabuild.execution.devices.timeout import WithTimeout

    driver = platforms.driver(name)
    return WithTimeout(name, driver) if driver else None


def pool_of(platforms: PlatformIndex, devices: Devices) -> DevicePool:
    """The pool of the devices; None without devices."""
    from kabuild.execution.devices import DevicePool

    return DevicePool(devices, driver_of(platforms, devices.platform) if devices.found else None)


def _cpu(asked: Platform, only: Sequence[int]) -> Platform:
    if only:
        raise UsageError(
            Reason.BAD_FLAG,
            "--devices: platform cpu has no numbered devices",
            hint="name the platform, too: --platform=NAME --devices=0,2",
        )
    found = cpu_platform()
    if asked.get("arch", found.get("arch")) != found.get("arch"):
        raise UsageError(
            Reason.UNKNOWN_PLATFORM,
            f"this machine is {found}, not {asked}",
            hint="--platform=cpu",
        )
    return found


def _checked(device: Device, known: Collection[str]) -> Device:
    if device.problem or not known or device.arch in known:
        return device
    return replace(device, problem=f"nothing here compiles for {device.arch}")
