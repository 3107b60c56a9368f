"""Processes of this machine that a sandbox should not have left behind."""

from __future__ import annotations

import os
import select
from pathlib import Path


def pids_of(marker: str) -> list[int]:
    """Processes with ``marker`` in their command line, except this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if marker in command:
                found.append(int(entry.name))
    return found


def all_end(pids: list[int], within_seconds: float = 30.0) -> bool:
    """Wait until every process has ended; ``False`` when one has not."""
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        if not select.select([fd], [], [], within_seconds)[0]:
            return False
        os.close(fd)
    return True
