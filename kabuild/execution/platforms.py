"""The platforms of this machine: what cannot be hashed but can change a result."""

from __future__ import annotations

import platform as machine
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kabuild.base.errors import Reason, UsageError
from kabuild.execution.host import cpus
from kabuild.model.platform import Platform

if TYPE_CHECKING:
    from kabuild.model.device import Devices

_CPUINFO = Path("/proc/cpuinfo")


def machine_platform(asked: Platform, only: Sequence[int] = ()) -> Platform:
    """What this machine has of the platform that was asked for.

    ``only`` are the numbers of those devices that may be used; empty means all.

    Raises UsageError(UNKNOWN_PLATFORM) for a CPU of another architecture,
    UsageError(BAD_FLAG) for devices that there are not, and InfraError(NO_DEVICE) where neither
    a device nor the user says which architecture.
    """
    if asked.name != "cpu":
        return survey(asked, only)[0]
    if only:
        raise UsageError(
            Reason.BAD_FLAG,
            "--devices: platform cpu has no numbered devices",
            hint="name the platform, too: --platform=cuda --devices=0,2",
        )
    found = cpu_platform()
    if asked.get("arch", found.get("arch")) != found.get("arch"):
        raise UsageError(
            Reason.UNKNOWN_PLATFORM,
            f"this machine is {found}, not {asked}",
            hint="--platform=cpu",
        )
    return found


def survey(asked: Platform, only: Sequence[int] = ()) -> tuple[Platform, Devices]:
    """The platform as ``machine_platform`` has it, and its devices; ``cpu`` has none."""
    from kabuild.execution.devices import choose, vendor_of  # a null build on cpu does without
    from kabuild.model.device import Devices

    if asked.name == "cpu":
        return machine_platform(asked, only), Devices()
    return choose(asked, vendor_of(asked.name).probe(), only)


def cpu_platform() -> Platform:
    """The host's CPU as a platform: architecture, model, and how many cores may be used.

    The model and the cores are in the keys of measurements only; see the rules.
    """
    arch = machine.machine()
    return Platform(
        "cpu", (("arch", arch), ("device", cpu_model() or arch), ("cores", str(cpus())))
    )


def cpu_model(cpuinfo: Path = _CPUINFO) -> str:
    """What the kernel calls the CPU; empty where it does not say."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "")
