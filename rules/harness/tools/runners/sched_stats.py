"""The scheduler's statistics of a thread: how long it ran, and how long it waited to run.

Standard library only, because it is copied into sandboxes and used in processes just forked.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

_RAN, _WAITED = 0, 1  # fields of schedstat, both in ns


@dataclass(frozen=True)
class Scheduled:
    """Nanoseconds since a thread began; zeros if the kernel does not count.

    Attributes:
        ran_ns: on a processor.
        waited_ns: ready to run, while others had the processors.
    """

    ran_ns: int = 0
    waited_ns: int = 0

    @classmethod
    def of(cls, thread: Path) -> Scheduled:
        """Read ``/proc/PID/task/TID``, or ``/proc/thread-self`` for the caller."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (thread / "schedstat").read_text().split()
            return cls(int(fields[_RAN]), int(fields[_WAITED]))
        return cls()


def steps_back(pid: int) -> bool:
    """Whether a process has lowered the priority of its whole session since it began."""
    with contextlib.suppress(OSError):
        return not Path(f"/proc/{pid}/autogroup").read_text().endswith(" nice 0\n")
    return False


class Waits:
    """The time that a process's threads waited in each period between two readings."""

    def __init__(self, pid: int) -> None:
        self._threads = Path(f"/proc/{pid}/task")
        self._main = str(pid)
        self._before: dict[str, int] = {}

    def since_last(self) -> int:
        """The main thread's wait plus the longest of another, in ns since the last reading.

        A process that stops only when all its threads have cannot have been delayed by more.
        """
        now: dict[str, int] = {}
        with contextlib.suppress(OSError):
            now = {entry.name: Scheduled.of(entry).waited_ns for entry in self._threads.iterdir()}
        grown = {name: waited - self._before.get(name, 0) for name, waited in now.items()}
        self._before = now
        return grown.pop(self._main, 0) + max(grown.values(), default=0)
