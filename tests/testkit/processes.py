"""What other processes of this machine are doing, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """All processes below ``pid``, in any namespace."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = list(children.get(pid, ()))
    for child in found:
        found += children.get(child, ())
    return found


def busy_seconds(pid: int, name: str) -> float:
    """Processor time of a process called ``name``; 0 for another one, or none."""
    try:
        if (Path("/proc") / str(pid) / "comm").read_text().strip() != name:
            return 0.0
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    fields = _stat(pid)
    return int(fields[11]) / _TICKS if fields else 0.0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty where the process is gone."""
    try:
        text = (Path("/proc") / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()
