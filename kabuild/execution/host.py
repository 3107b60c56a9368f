"""What this machine offers to actions."""

from __future__ import annotations

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def cpus(quota: Path = _QUOTA) -> int:
    """CPUs that this process may keep busy: its affinity, less where a cgroup allows less."""
    affinity = len(os.sched_getaffinity(0))
    try:
        allowed, period = quota.read_text().split()
    except (OSError, ValueError):
        return affinity
    if allowed == "max":
        return affinity
    return max(1, min(affinity, int(allowed) // int(period)))
