"""Finds out why a runner died of SIGKILL, a signal with several causes.

The kernel sends it when memory runs out and at a hard limit of processor time; a candidate may send
it to itself. Only the first can be caused by other programs.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from dataclasses import dataclass
from pathlib import Path

from base.program import CandidateFault, MachineFault
from terms.reasons import Reason

from runners import diagnosis

MODEST_BYTES = 1 << 30
"""A runner that never touched more than this, besides the judge's buffers, has not used up a
machine's memory."""
_NEARLY = 0.8  # of a limit: the kernel enforces it by ticks but counts exactly
_KIBIBYTE = 1024  # the unit of a peak
_NANOSECONDS = 1e9


@dataclass(frozen=True)
class Death:
    """The kernel's figures for a process that has ended.

    Attributes:
        peak_bytes: the most memory that was resident at once.
        processor_ns: the CPU time of its threads.
        processor_limit: its hard limit of CPU time, in seconds; 0 if that cannot be read.
        touched_bytes: of all pages that it ever faulted in. Memory that was shared and unmapped is
            not in the peak, but each page of it has cost a fault.

    The figures include those of children that it has waited for.
    """

    peak_bytes: int = 0
    processor_ns: int = 0
    processor_limit: int = 0
    touched_bytes: int = 0

    @classmethod
    def bury(cls, pid: int) -> tuple[int, Death]:
        """Reap a child that has ended: its wait status and the rest. Raises ChildProcessError."""
        limit = _processor_limit(pid)
        _, status, usage = os.wait4(pid, 0)
        ran = int((usage.ru_utime + usage.ru_stime) * _NANOSECONDS)
        touched = (usage.ru_minflt + usage.ru_majflt) * mmap.PAGESIZE
        return status, cls(usage.ru_maxrss * _KIBIBYTE, ran, limit, touched)

    @property
    def at_its_limit(self) -> bool:
        """Whether it has used up its CPU time."""
        return 0 < _NEARLY * self.processor_limit * _NANOSECONDS <= self.processor_ns


def _processor_limit(pid: int) -> int:
    """The hard limit of a process in seconds; 0 for none. ``prlimit`` is absent in sandboxes."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
            if line.startswith("Max cpu time "):
                return int(line.split()[4])
    return 0


def kills() -> int | None:
    """The number of processes that the kernel has killed so far for lack of memory, or None."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None


def fault(
    death: Death,
    *,
    before: int | None,
    lent_bytes: int,
    processor_limit: int,
    doing: str,
    said: str,
) -> CandidateFault:
    """The candidate's fault in such a death.

    Args:
        before: the value of ``kills`` when the runner was started.
        lent_bytes: size of the judge's buffers, which the runner may have touched.
        processor_limit: the limit set by the judge, in seconds.
        doing: what the runner was asked to do.
        said: the end of its output.

    Raises MachineFault if other programs have used up the machine's memory.
    """
    if death.at_its_limit:
        what = f"used up its {processor_limit} s of processor time"
        if death.processor_limit < processor_limit:
            what = f"used up its own limit of {death.processor_limit} s of processor time"
        return diagnosis.fault(Reason.TIMEOUT, f"{what} {doing}", said)
    after = kills()
    if before is not None and before == after:
        what = f"was killed (SIGKILL) {doing}, although memory had not run out"
        return diagnosis.fault(Reason.CRASH, what, said)
    held = max(death.peak_bytes, death.touched_bytes)
    if before is not None and held - lent_bytes <= MODEST_BYTES:
        raise MachineFault(
            f"the system ran out of memory and killed a runner {doing}, which had "
            f"{death.peak_bytes >> 20} MiB"
        )
    what = f"was killed by the system, which ran out of memory, {doing}"
    return diagnosis.fault(Reason.OUT_OF_MEMORY, what, said)
