"""The limits of one worker of a sandbox, and how Linux sets them.

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


UNLIMITED = resource.RLIM_INFINITY
_NAMES = {
    resource.RLIMIT_AS: ("address space", "v", 1024),
    resource.RLIMIT_DATA: ("private memory", "d", 1024),
    resource.RLIMIT_CPU: ("processor time", "t", 1),
    resource.RLIMIT_NPROC: ("the number of processes", "u", 1),
    resource.RLIMIT_FSIZE: ("the size of files", "f", 1024),
    resource.RLIMIT_NOFILE: ("the number of open files", "n", 1),
    resource.RLIMIT_STACK: ("the stack", "s", 1024),
    resource.RLIMIT_MEMLOCK: ("memory that is locked", "l", 1024),
    resource.RLIMIT_SIGPENDING: ("the number of signals that wait", "i", 1),
}
"""What a limit is of, and the option of the shell's ``ulimit``, with its unit."""

_NOTHING = (resource.RLIMIT_MSGQUEUE, resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO)
"""What no worker may use."""

_CORE_BYTES = 1
"""Too small for a core file. None at all would still start a handler of crashes."""


@dataclass(frozen=True)
class Limits:
    """What one worker may use; ``None`` leaves the caller's own limit, ``UNLIMITED`` lifts it.

    ``memory_bytes`` limits the private writable memory of each process (RLIMIT_DATA; address
    space would stop GPU drivers, which reserve far more than they use). ``cpu_seconds``,
    ``file_bytes``, ``open_files``, ``stack_bytes``, ``address_bytes`` and ``locked_bytes`` are per
    process. ``queued_signals``, of which a timer needs one, are per user and sandbox.
    ``processes`` counts all tasks of the sandbox; the kernel does not count those of the host's
    root, for whom the pid namespace is capped as well (Linux 6.14 and later; at about 300 more).
    """

    memory_bytes: int | None = None
    cpu_seconds: int | None = None
    processes: int | None = None
    file_bytes: int | None = None
    open_files: int | None = None
    stack_bytes: int | None = None
    address_bytes: int | None = None
    locked_bytes: int | None = None
    queued_signals: int | None = None


def lift_limits() -> None:
    """Raise the limits of this process as far as allowed, so that its shell's have no effect."""
    for kind in _NAMES:
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (hard, hard))


def require_limits(limits: Limits) -> None:
    """Raise ``OSError`` where this process cannot grant a worker all that ``limits`` allow.

    With less it would fail, for what the machine refuses.
    """
    for kind, (wanted, ceiling) in _wanted(limits).items():
        _, hard = resource.getrlimit(kind)
        if hard == UNLIMITED or UNLIMITED != ceiling <= hard:
            continue
        what, option, unit = _NAMES[kind]
        needed = "it unlimited" if wanted == UNLIMITED else f"{-(-ceiling // unit)}"
        text = f"{what} is limited to {hard // unit} (ulimit -H{option}), but a sandbox needs"
        raise OSError(errno.EPERM, f"{text} {needed}: raise this limit")


def limit_resources(limits: Limits) -> None:
    """Put the calling process under ``limits``; a lower hard limit that it already has stays."""
    for kind in _NOTHING:
        resource.setrlimit(kind, (0, 0))
    wanted = {**_wanted(limits), resource.RLIMIT_CORE: (_CORE_BYTES, _CORE_BYTES)}
    for kind, (soft, ceiling) in wanted.items():
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (_lower(soft, hard), _lower(ceiling, hard)))


def _wanted(limits: Limits) -> dict[int, tuple[int, int]]:
    """The soft and the hard limit of each kind that a worker gets."""
    processes, cpu = limits.processes, limits.cpu_seconds
    if processes is not None and processes != UNLIMITED:
        processes += _OWN_PROCESSES
    wanted = {
        resource.RLIMIT_AS: limits.address_bytes,
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_STACK: limits.stack_bytes,
        resource.RLIMIT_MEMLOCK: limits.locked_bytes,
        resource.RLIMIT_SIGPENDING: limits.queued_signals,
    }
    found = {kind: (value, value) for kind, value in wanted.items() if value is not None}
    if cpu is not None and cpu != UNLIMITED:
        found[resource.RLIMIT_CPU] = (cpu, cpu + 1)  # SIGXCPU, then SIGKILL
    return found


def _lower(one: int, other: int) -> int:
    """The lower of two limits."""
    known = [limit for limit in (one, other) if limit != UNLIMITED]
    return min(known, default=UNLIMITED)


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
