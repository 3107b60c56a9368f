"""The CPUs of the machine that actions run on."""

from __future__ import annotations

import os
import platform as machine
from pathlib import Path

from kabuild.model.platform import CPU, Platform

_CPUINFO = Path("/proc/cpuinfo")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def cpus(quota: Path = _QUOTA) -> int:
    """CPUs that this process may use: its affinity, or less if its cgroup allows less."""
    affinity = len(os.sched_getaffinity(0))
    try:
        allowed, period = quota.read_text().split()
    except (OSError, ValueError):
        return affinity
    if allowed == "max":
        return affinity
    return max(1, min(affinity, int(allowed) // int(period)))


def cpu_platform() -> Platform:
    """The host's CPU as a platform: architecture, model, and how many cores may be used.

    The model and the cores are in the keys of measurements only; see the rules.
    """
    arch = machine.machine()
    return Platform(CPU, (("arch", arch), ("device", cpu_model() or arch), ("cores", str(cpus()))))


def cpu_model(cpuinfo: Path = _CPUINFO) -> str:
    """The kernel's name of the CPU; empty if unknown."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "")
