"""The platforms of this machine: what cannot be hashed but can change a result."""

from __future__ import annotations

import platform as machine
from pathlib import Path

from kabuild.base.errors import InfraError, Reason, UsageError
from kabuild.execution.host import cpus
from kabuild.model.platform import Platform

_CPUINFO = Path("/proc/cpuinfo")


def machine_platform(asked: Platform) -> Platform:
    """What this machine has of the platform that was asked for.

    Raises UsageError(UNKNOWN_PLATFORM) for a CPU of another architecture, and
    InfraError(NO_DEVICE) where neither a device nor the user says which architecture.
    """
    if asked.name == "cpu":
        found = cpu_platform()
        if asked.get("arch", found.get("arch")) != found.get("arch"):
            raise UsageError(
                Reason.UNKNOWN_PLATFORM,
                f"this machine is {found}, not {asked}",
                hint="--platform=cpu",
            )
        return found
    if not asked.get("arch"):
        example = {"cuda": "cuda:sm_90", "rocm": "rocm:gfx942"}[asked.name]
        raise InfraError(
            Reason.NO_DEVICE,
            f"no {asked.name} device on this machine",
            hint=f"kernels can be compiled without one: --platform={example}",
        )
    return asked


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
