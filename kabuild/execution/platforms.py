"""The platforms of this machine: what cannot be hashed but can change a result."""

from __future__ import annotations

import platform as machine
from pathlib import Path

from kabuild.execution.host import cpus
from kabuild.model.platform import Platform

_CPUINFO = Path("/proc/cpuinfo")


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
