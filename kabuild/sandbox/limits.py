"""What one worker of a sandbox may use, and how Linux is told.

Standard library only, with ``rootfs.py`` beside it; a hashed input of gate actions (see
``namespaces.py``).
"""

from __future__ import annotations

import errno
import os
import resource
from dataclasses import dataclass

if __package__:
    from .rootfs import write_file
else:
    from rootfs import write_file  # type: ignore[import-not-found, no-redef]

_RESERVED_PIDS = 300
_MOST_PIDS = 4 << 20
_OWN_PROCESSES = 2  # anchor and init belong to the same user namespace


@dataclass(frozen=True)
class Limits:
    """What one worker may use; ``None`` leaves the caller's own limit.

    ``memory_bytes`` limits the private writable memory of each process (RLIMIT_DATA; address
    space would stop GPU drivers, which reserve far more than they use). ``cpu_seconds``,
    ``file_bytes``, ``open_files`` and ``stack_bytes`` are per process. ``processes`` counts all
    tasks of the sandbox; the kernel does not count those of the host's root, for whom the pid
    namespace is capped as well (Linux 6.14 and later; at about 300 more).
    """

    memory_bytes: int | None = None
    cpu_seconds: int | None = None
    processes: int | None = None
    file_bytes: int | None = None
    open_files: int | None = None
    stack_bytes: int | None = None


def limit_resources(limits: Limits) -> None:
    """Put the calling process under ``limits``; a lower limit that it already has stays."""
    _set_limit(resource.RLIMIT_CORE, 0)
    _set_limit(resource.RLIMIT_DATA, limits.memory_bytes)
    _set_limit(resource.RLIMIT_CPU, limits.cpu_seconds, grace=1)  # SIGXCPU, then SIGKILL
    if limits.processes is not None:
        _set_limit(resource.RLIMIT_NPROC, limits.processes + _OWN_PROCESSES)
    _set_limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    _set_limit(resource.RLIMIT_NOFILE, limits.open_files)
    _set_limit(resource.RLIMIT_STACK, limits.stack_bytes)


def _set_limit(kind: int, wanted: int | None, grace: int = 0) -> None:
    if wanted is None:
        return
    _, hard = resource.getrlimit(kind)
    ceiling = wanted + grace if hard == resource.RLIM_INFINITY else min(wanted + grace, hard)
    resource.setrlimit(kind, (min(wanted, ceiling), ceiling))


def limit_pids(processes: int) -> None:
    """Limit the pids of this pid namespace to some more than ``processes``.

    Linux insists on eight for each processor: the limit is doubled until it is taken. Before
    Linux 6.14 it was one setting for the whole host, which is left alone.
    """
    major, minor = os.uname().release.split("-")[0].split(".")[:2]
    if (int(major), int(minor)) < (6, 14):
        return
    most = _RESERVED_PIDS + max(1, processes)
    while not _takes_pids(most):
        most *= 2


def _takes_pids(most: int) -> bool:
    """Set the limit of this pid namespace, unless the kernel finds it too low."""
    try:
        write_file("/proc/sys/kernel/pid_max", str(most))
    except OSError as error:
        if error.errno != errno.EINVAL or most > _MOST_PIDS:
            raise
        return False
    return True
