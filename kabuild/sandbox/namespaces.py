"""A process in fresh Linux namespaces, from nothing but system calls.

Self-contained (standard library, with ``limits.py``, ``rootfs.py`` and ``seccomp.py`` beside
it): these four are also hashed inputs of gate actions, where the judge uses them to put a
candidate into a second sandbox inside the first. Works as root and as an ordinary user, needs
no installed helper, and Linux 5.12 or later.

``fork_contained`` starts three processes:

    anchor   what the caller sees; waits, and ends as the worker ended. Outside the new pid
             namespace. When it dies, by whatever cause, so does everything below it.
    init     pid 1 of the new pid namespace; builds the file system, reaps orphans. Keeps its
             capabilities within the new user namespace, so the worker cannot inspect it.
    worker   runs ``child``: no capabilities, ``no_new_privs``, resource limits, system-call
             filter, and only the files of its ``View``.

The network namespace has no configured interface: not even loopback is up. Landlock is left
out on purpose: everything that it could take away is already absent from the mount and network
namespaces, and it would forbid nesting.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NoReturn

if __package__:
    from . import rootfs
    from . import seccomp as filters
    from .limits import Limits, limit_pids, limit_resources
    from .rootfs import USER_ID, Bind, View, check, system_binds, write_file
else:
    import rootfs  # type: ignore[import-not-found, no-redef]
    import seccomp as filters  # type: ignore[import-not-found, no-redef]
    from limits import (  # type: ignore[import-not-found, no-redef]
        Limits,
        limit_pids,
        limit_resources,
    )
    from rootfs import (  # type: ignore[no-redef]
        USER_ID,
        Bind,
        View,
        check,
        system_binds,
        write_file,
    )

__all__ = ["Bind", "Limits", "SandboxError", "View", "fork_contained", "probe", "system_binds"]

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_CAPABILITY_VERSION_3 = 0x20080522
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CLOSE_RANGE = 436
_HIGHEST_FD = 0xFFFFFFFF
_SETUP_FAILED = 125
_PAUSES = (0.02, 0.1, 0.4)
"""Seconds before a sandbox is built again, if one of its files was missing."""
_REPLACING = frozenset(
    str(number) for number in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ESTALE, errno.EBUSY)
)
_libc = ctypes.CDLL(None, use_errno=True)


class SandboxError(OSError):
    """A sandbox could not be set up: the machine failed, not the command."""


class _FileGone(Exception):  # noqa: N818 - an event, which becomes an error when it lasts
    """A file of the view was missing when it was to be placed; the text names it."""


def fork_contained(
    view: View,
    limits: Limits,
    child: Callable[[], int | None],
    *,
    keep_fds: Iterable[int] = (),
    seccomp: filters.Profile = "strict",
    supervisor: Callable[[int], int] | None = None,
    supervisor_fds: Iterable[int] = (),
) -> int:
    """Run ``child`` in a sandbox and return the pid of its anchor.

    The exit code is what ``child`` returns (``None`` is 0), or 1 when it raises. ``waitpid`` on
    the anchor gives the worker's own exit code or signal; SIGKILL to it ends the whole tree,
    and so does the end of the calling thread. When the worker ends, the rest of its tree is
    killed. Call it from a process without other threads.

    Descriptors in ``keep_fds`` stay open in the worker at their numbers; 0, 1 and 2 are
    ``/dev/null`` unless named. ``supervisor`` replaces the waiting of pid 1: it gets the
    worker's pid, runs inside the sandbox with only ``supervisor_fds`` open, and its result
    becomes the anchor's exit code.

    Returns once the sandbox stands. Raises ``SandboxError``, with the step that failed, when
    it could not be set up; nothing of it is left then. If a file was missing, it is tried
    again, since a package manager may be replacing it.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or the worker would write it a second time
    # Done here rather than in the forks, where it would be done every time.
    filters.prepare(seccomp)
    handled = tuple(number for number in _signals() if callable(signal.getsignal(number)))
    box = _Box(view, limits, child, tuple(keep_fds), seccomp, handled)
    for pause in (*_PAUSES, None):
        try:
            return box.start(supervisor, tuple(supervisor_fds))
        except _FileGone as gone:
            if pause is None:
                raise SandboxError(str(gone)) from None
            time.sleep(pause)
    raise AssertionError("unreachable")


def probe() -> str | None:
    """``None`` when sandboxes work on this machine, else why not. Takes a few milliseconds."""
    if not sys.platform.startswith("linux") or os.uname().machine not in _CAPSET:
        return f"no sandbox for {sys.platform} on {os.uname().machine}"
    try:
        pid = fork_contained(View(), Limits(), lambda: 0)
    except OSError as error:
        return f"{error}{_hint()}"
    _, status = os.waitpid(pid, 0)
    return None if status == 0 else f"the test process ended with wait status {status}"


def _hint() -> str:
    """The setting that usually explains a refusal, as ``; ...``, or nothing."""
    refusing = {
        "/proc/sys/user/max_user_namespaces": "0",
        "/proc/sys/kernel/unprivileged_userns_clone": "0",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
    }
    for path, value in refusing.items():
        with contextlib.suppress(OSError):
            if Path(path).read_text().strip() == value:
                return f"; {path} is {value}"
    return ""


@dataclass(frozen=True)
class _Box:
    """The processes of one sandbox; each ``run_*`` is the life of one of them."""

    view: View
    limits: Limits
    child: Callable[[], int | None]
    keep_fds: tuple[int, ...]
    profile: filters.Profile
    handled: tuple[int, ...]  # signals for which the caller has handlers
    status: int = -1  # the pipe on which the caller waits for "ok" or for an error

    def start(
        self, supervisor: Callable[[int], int] | None, supervisor_fds: tuple[int, ...]
    ) -> int:
        """Fork the anchor; its pid, once the sandbox stands. Raises SandboxError, _FileGone."""
        status_read, low_write = os.pipe()
        status_write = fcntl.fcntl(low_write, fcntl.F_DUPFD_CLOEXEC, 3)
        os.close(low_write)
        anchor = os.fork()
        if anchor == 0:
            try:
                os.close(status_read)
                replace(self, status=status_write).run_anchor(supervisor, supervisor_fds)
            finally:
                os._exit(_SETUP_FAILED)
        os.close(status_write)
        with os.fdopen(status_read, "rb") as pipe:
            report = pipe.read().decode(errors="replace")
        if report == "ok":
            return anchor
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(anchor, signal.SIGKILL)
            os.waitpid(anchor, 0)
        number, _, text = report.partition(" ")
        if number in _REPLACING:
            raise _FileGone(text)
        raise SandboxError(text or "the sandbox died in its set-up")

    def fail(self, step: str) -> NoReturn:
        """Report the exception in flight to the caller, its number first, and end."""
        error = sys.exc_info()[1]
        text = error.strerror if isinstance(error, OSError) and not error.filename else None
        number = error.errno if isinstance(error, OSError) else 0
        report = f"{number} {step}: {text or error or type(error).__name__}"
        with contextlib.suppress(OSError):
            os.write(self.status, report.encode())
        os._exit(_SETUP_FAILED)

    def run_anchor(
        self, supervisor: Callable[[int], int] | None, supervisor_fds: tuple[int, ...]
    ) -> NoReturn:
        """Enter the namespaces, start init, wait for it."""
        try:
            _enter_namespaces(network=self.view.network)
            ours, theirs = socket.socketpair()
            init = os.fork()
            if init == 0:
                ours.close()
                self.run_init(theirs, supervisor, supervisor_fds)
        except BaseException:  # noqa: BLE001 - everything is reported to the caller
            self.fail("cannot enter namespaces")
        close_all_but([ours.fileno()])
        worker_status = ours.recv(4)
        _, status = os.waitpid(init, 0)
        _end_as(int.from_bytes(worker_status, "little") if worker_status else status)

    def run_init(
        self,
        anchor: socket.socket,
        supervisor: Callable[[int], int] | None,
        supervisor_fds: tuple[int, ...],
    ) -> NoReturn:
        """Build the view, start the worker, and look after its tree."""
        try:
            die_with_parent()
            orphaned = select.poll()
            orphaned.register(anchor.fileno(), select.POLLHUP)
            if orphaned.poll(0):  # the anchor died before the line above took effect
                os._exit(_SETUP_FAILED)
            for number in self.handled:  # without handlers, the kernel shields pid 1
                signal.signal(number, signal.SIG_DFL)
            os.umask(0o022)
            rootfs.build_root(self.view)
            if self.limits.processes is not None and self.view.mount_proc:
                limit_pids(self.limits.processes)
            _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
            worker = os.fork()
        except BaseException:  # noqa: BLE001 - everything is reported to the caller
            self.fail("cannot build the sandbox")
        if worker == 0:
            self.run_worker()
        code = _SETUP_FAILED
        try:
            close_all_but([anchor.fileno(), *supervisor_fds])
            if supervisor is None:
                anchor.sendall(_wait_for(worker).to_bytes(4, "little"))
            else:
                code = supervisor(worker)
        finally:
            os._exit(code)  # the kernel kills what is left in the pid namespace

    def run_worker(self) -> NoReturn:
        """Give up every privilege, then run what the caller wants run."""
        try:
            _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
            os.setsid()
            os.chdir(self.view.cwd)
            if self.view.mount_proc:
                write_file("/proc/self/oom_score_adj", "1000")
                if self.profile == "strict":
                    rootfs.protect_proc()
            self.arrange_descriptors()
            limit_resources(self.limits)
            _drop_capabilities()
            filters.install(self.profile)
            os.write(self.status, b"ok")
            os.close(self.status)
        except BaseException:  # noqa: BLE001 - everything is reported to the caller
            self.fail("cannot confine the worker")
        run_and_exit(self.child)

    def arrange_descriptors(self) -> None:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in {0, 1, 2}.difference(self.keep_fds):
            os.dup2(null, fd)
        close_all_but([0, 1, 2, self.status, *self.keep_fds])
        for fd in (0, 1, 2, *self.keep_fds):
            os.set_inheritable(fd, True)  # noqa: FBT003 - the library's own signature


def run_and_exit(child: Callable[[], int | None]) -> NoReturn:
    """Run ``child`` and end this process as an interpreter would, but without its clean-up."""
    code = 1
    try:
        code = child() or 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
    except BaseException:  # noqa: BLE001 - as an interpreter would: trace and exit code 1
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def _enter_namespaces(*, network: bool) -> None:
    caller = os.getppid()
    user, group = os.geteuid(), os.getegid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # or uid_map would belong to the host's root
    if user == 0:
        with contextlib.suppress(PermissionError):
            os.setgroups([])
    flags = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWIPC | _CLONE_NEWUTS
    check(_libc.unshare(flags if network else flags | _CLONE_NEWNET), "unshare")
    write_file("/proc/self/setgroups", "deny")
    write_file("/proc/self/uid_map", f"{USER_ID} {user} 1")
    write_file("/proc/self/gid_map", f"{USER_ID} {group} 1")
    die_with_parent()
    if os.getppid() != caller:
        os._exit(_SETUP_FAILED)


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    check(_libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "prctl(PDEATHSIG)")


@cache
def _signals() -> tuple[int, ...]:
    return tuple(sorted(signal.valid_signals()))


def _wait_for(worker: int) -> int:
    """Reap until the worker ends; its wait status."""
    while True:
        pid, status = os.wait()
        if pid == worker:
            return status


def _drop_capabilities() -> None:
    capability = 0
    while _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    if ctypes.get_errno() != errno.EINVAL:  # EINVAL: past the last capability
        check(-1, "prctl(CAPBSET_DROP)")
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    number = ctypes.c_long(_CAPSET[os.uname().machine])
    check(_libc.syscall(number, ctypes.byref(header), ctypes.byref(nothing)), "capset")


def close_all_but(keep: Iterable[int]) -> None:
    """Close every descriptor that is not in ``keep``."""
    low = 0
    for fd in sorted(set(keep)):
        if fd > low:
            _close_range(low, fd - 1)
        low = fd + 1
    _close_range(low, _HIGHEST_FD)


def _close_range(first: int, last: int) -> None:
    number, flags = ctypes.c_long(_CLOSE_RANGE), ctypes.c_long(0)
    check(_libc.syscall(number, ctypes.c_ulong(first), ctypes.c_ulong(last), flags), "close_range")


def _end_as(status: int) -> NoReturn:
    """End this process as the wait status says: same exit code or same signal."""
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))
