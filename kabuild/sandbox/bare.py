"""Running a command without namespaces, where the machine refuses them.

Only limits and the reliable end of the process tree remain: the supervisor is the subreaper
of everything below it, and ends when the control socket closes (a parent-death signal would
leave grandchildren behind). Self-contained, because it runs inside a zygote.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterable
from dataclasses import replace

from .limits import Limits, limit_resources
from .namespaces import close_all_but, run_and_exit
from .rootfs import check

_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def fork_bare(
    cwd: str,
    limits: Limits,
    child: Callable[[], int | None],
    *,
    keep_fds: Iterable[int],
    supervisor: Callable[[int], int],
    supervisor_fds: Iterable[int],
) -> int:
    """Run ``child`` in ``cwd`` under ``limits``; the pid of the process that supervises it.

    The parameters are those of ``fork_contained``. The kernel counts all tasks of the user
    against ``limits.processes``, so the tasks that exist now are added.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.chdir(cwd)
        check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(CHILD_SUBREAPER)")
        worker = os.fork()
        if worker:
            close_all_but([0, 1, 2, *supervisor_fds])
            os._exit(supervisor(worker))
        os.setsid()
        close_all_but([0, 1, 2, *keep_fds])
        processes = limits.processes
        if processes is not None:  # of root the kernel counts none; then only sampling helps
            processes = processes + _tasks_of_user() if os.getuid() else None
        limit_resources(replace(limits, processes=processes))
        run_and_exit(child)
    finally:
        os._exit(1)


def _tasks_of_user() -> int:
    count = 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(FileNotFoundError):
            if entry.name.isdecimal() and entry.stat().st_uid == os.getuid():
                count += sum(1 for _ in os.scandir(f"/proc/{entry.name}/task"))
    return count
