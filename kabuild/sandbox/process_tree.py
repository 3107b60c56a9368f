"""The processes of one run, seen through /proc: how many, how big, how busy; and their end.

Self-contained: the supervisor runs it inside the sandbox, where psutil need not exist.
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """What some processes use at one moment.

    ``cpu_seconds`` includes children that they waited for. ``resident_bytes`` counts shared
    pages once for each process: an upper bound.
    """

    tasks: int
    cpu_seconds: float
    resident_bytes: int


@dataclass(frozen=True)
class _Stat:
    """One line of /proc/PID/stat."""

    pid: int
    parent: int
    group: int
    cpu_seconds: float
    threads: int
    resident_bytes: int


class ProcessTree:
    """All processes below this one, except this one.

    In its own pid namespace (``contained``) these are simply all others. Otherwise they
    are its descendants, and this process must be their subreaper, or orphans would be lost.
    """

    def __init__(self, *, contained: bool) -> None:
        self._contained = contained
        self._own = os.getpid()

    def count(self) -> int:
        """How many processes there are. In a pid namespace, at once whatever they do."""
        return len(_pids()) - 1 if self._contained else len(self._members())

    def usage(self) -> Usage:
        """What the processes use now."""
        stats = self._members()
        return Usage(
            tasks=sum(stat.threads for stat in stats),
            cpu_seconds=sum(stat.cpu_seconds for stat in stats),
            resident_bytes=sum(stat.resident_bytes for stat in stats),
        )

    def private_bytes(self) -> int:
        """Anonymous and shared memory, each page counted once in all. Slower than ``usage``."""
        return sum(_proportional_bytes(stat.pid) for stat in self._members())

    def kill(self) -> None:
        """Kill every process and reap it; returns when none is left."""
        while True:
            if self._contained:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
            else:
                self._kill_groups()
            try:
                os.waitpid(-1, 0)
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass  # looking at all processes again for each dead one would take for ever
            except ChildProcessError:
                return

    def _kill_groups(self) -> None:
        """Kill by process group: at once, so that a fork bomb cannot outrun it."""
        own = os.getpgrp()
        for target in {-s.group if s.group != own else s.pid for s in self._members()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(target, signal.SIGKILL)

    def _members(self) -> list[_Stat]:
        stats = [stat for pid in _pids() if pid != self._own and (stat := _read_stat(pid))]
        return stats if self._contained else _descendants(self._own, stats)


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal()]


def _descendants(root: int, stats: list[_Stat]) -> list[_Stat]:
    children: dict[int, list[_Stat]] = {}
    for stat in stats:
        children.setdefault(stat.parent, []).append(stat)
    found: list[_Stat] = []
    pending = [root]
    while pending:
        below = children.pop(pending.pop(), [])
        found += below
        pending += [stat.pid for stat in below]
    return found


def _read_stat(pid: int) -> _Stat | None:
    """``None`` when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name, in parentheses, may be any bytes; fields count from behind it.
    fields = text[text.rindex(b")") + 2 :].split()
    return _Stat(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        cpu_seconds=sum(int(field) for field in fields[11:15]) / _TICK,
        threads=int(fields[17]),
        resident_bytes=int(fields[21]) * _PAGE,
    )


def _proportional_bytes(pid: int) -> int:
    total = 0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().split(b"\n"):
            if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")):
                total += int(line.split()[1]) << 10
    return total
