"""The CPUs of the machine that actions run on.

Their vector instructions, by which PyTorch and NumPy choose code, are not part of any key, although
the last digits of ``exp`` differ between AVX-512 and AVX2.
"""

from __future__ import annotations

import os
import platform as machine
from pathlib import Path

from kabuild.model.platform import CPU, Platform

_LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "fma", "f16c", "bmi2"},
}
"""By the names of the x86-64 psABI, the best first."""
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
    return _first("model name", cpuinfo)


def instructions(cpuinfo: Path = _CPUINFO) -> str:
    """The CPU's best level of vector instructions; empty if the kernel does not say."""
    flags = {*_first("flags", cpuinfo).split()}
    return next((level for level, needed in _LEVELS.items() if needed <= flags), "")


def _first(name: str, cpuinfo: Path) -> str:
    """What the kernel says under ``name`` of the first CPU; empty if nothing."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    found = (line.partition(":")[2].strip() for line in lines if line.startswith(name))
    return next(found, "")
