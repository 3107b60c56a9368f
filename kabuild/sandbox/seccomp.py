"""System-call filters for sandboxed processes, assembled by hand for x86-64 and arm64.

Self-contained (standard library only): it is also placed beside ``namespaces.py`` in the input
root of gate actions. Both profiles are deny lists, because hostile kernels run inside large
programs (torch, compilers, GPU drivers) whose system calls cannot be enumerated; what protects
the host are the namespaces. The filter takes away what namespaces do not cover: interfaces of
the kernel that have no business in a build, other processes' memory, and sockets of families
that network namespaces do not separate (vsock reaches the hypervisor).

``strict``    for hostile code: no new namespaces, no mounts, and everything below.
``nestable``  for trusted code that builds a second sandbox inside the first one.

A denied call returns EPERM. ``clone3`` is denied with ENOSYS under ``strict``, because a filter
cannot read its flags; libraries then fall back to ``clone``, whose flags it can read.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from functools import cache
from typing import Literal

Profile = Literal["strict", "nestable"]

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}
_X32_BIT = 0x40000000

# name: (number on x86-64, number on arm64); None where the call does not exist.
_NAMESPACE_CALLS: dict[str, tuple[int | None, int | None]] = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
_DENIED: dict[str, tuple[int | None, int | None]] = {
    # other processes' memory and descriptors
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    # file systems
    "chroot": (161, 51),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    # parts of the kernel with a long record of holes
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "_sysctl": (156, None),
    # what no signal ends, not even SIGKILL, before it has gone through as much as was asked
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    # memory that no process maps, hence that no limit counts
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "memfd_secret": (447, 447),
    # the machine
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "acct": (163, 89),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "iopl": (172, None),
    "ioperm": (173, None),
    "vhangup": (153, 58),
}
_INSPECTED: dict[str, tuple[int | None, int | None]] = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "prlimit64": (302, 261),
    "ioctl": (16, 29),
}

_NEW_NAMESPACE_FLAGS = 0x7E020000  # every CLONE_NEW* that clone() accepts
_SOCKET_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

# Classic BPF (linux/bpf_common.h, linux/seccomp.h).
_LOAD, _JUMP_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NR_OFFSET, _ARCH_OFFSET = 0, 4

_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_SPEC_ALLOW = 4  # no speculation penalty: timed code runs under this filter


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _return_errno(number: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | number)


def _load_argument(index: int) -> bytes:
    """Loads the low 32 bits of a system call's argument; both machines are little-endian."""
    return _instruction(_LOAD, 16 + 8 * index)


def _when(number: int, body: bytes) -> bytes:
    """Runs ``body``, which must return, for system call ``number``; else skips it."""
    return _instruction(_JUMP_EQUAL, number, 0, len(body) // 8) + body


def _allow_only(argument: int, values: tuple[int, ...], error: int) -> bytes:
    code = _load_argument(argument)
    for value in values:
        code += _instruction(_JUMP_EQUAL, value, 0, 1) + _instruction(_RETURN, _ALLOW)
    return code + _return_errno(error)


def _deny_only(argument: int, values: tuple[int, ...]) -> bytes:
    code = _load_argument(argument)
    for value in values:
        code += _instruction(_JUMP_EQUAL, value, 0, 1) + _return_errno(errno.EPERM)
    return code + _instruction(_RETURN, _ALLOW)


def numbers(machine: str) -> dict[str, int]:
    """Every system call that the filters name, with its number on ``machine``."""
    column = _COLUMN[machine]
    table = {**_NAMESPACE_CALLS, **_DENIED, **_INSPECTED}
    found = ((name, pair[column]) for name, pair in table.items())
    return {name: number for name, number in found if number is not None}


@cache
def assemble(profile: Profile, machine: str) -> bytes:
    """The filter as an array of ``struct sock_filter`` (8 bytes each).

    Raises ``KeyError`` for a machine other than ``x86_64`` and ``aarch64``.
    """
    number = numbers(machine)
    denied = [*_DENIED, *(_NAMESPACE_CALLS if profile == "strict" else ())]
    code = _instruction(_LOAD, _ARCH_OFFSET)
    code += _instruction(_JUMP_EQUAL, _AUDIT_ARCH[machine], 1, 0)
    code += _instruction(_RETURN, _KILL_PROCESS)
    code += _instruction(_LOAD, _NR_OFFSET)
    if machine == "x86_64":
        code += _instruction(_JUMP_SET, _X32_BIT, 0, 1) + _return_errno(errno.ENOSYS)
    for name in denied:
        if name in number:
            code += _when(number[name], _return_errno(errno.EPERM))
    code += _when(number["socket"], _allow_only(0, _SOCKET_FAMILIES, errno.EAFNOSUPPORT))
    code += _when(number["ioctl"], _deny_only(1, _TERMINAL_INJECTION))
    if profile == "strict":
        code += _when(number["clone3"], _return_errno(errno.ENOSYS))
        # Limits of another process: pid 1 of the sandbox has the same user.
        code += _when(number["prlimit64"], _allow_only(0, (0,), errno.EPERM))
        refused = _instruction(_JUMP_SET, _NEW_NAMESPACE_FLAGS, 0, 1) + _return_errno(errno.EPERM)
        body = _load_argument(0) + refused + _instruction(_RETURN, _ALLOW)
        code += _when(number["clone"], body)
    return code + _instruction(_RETURN, _ALLOW)


def prepare(profile: Profile) -> None:
    """Assemble a filter ahead of time, so that forks of this process need not."""
    if os.uname().machine in _AUDIT_ARCH:
        assemble(profile, os.uname().machine)


def install(profile: Profile) -> None:
    """Put the calling thread, and all that it starts, under a filter; there is no way back.

    Also sets ``no_new_privs``. Raises ``OSError`` when the kernel refuses.
    """
    machine = os.uname().machine
    if machine not in _AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"no system-call filter for {machine}")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
    code = ctypes.create_string_buffer(assemble(profile, machine))
    program = _Program((len(code) - 1) // 8, ctypes.addressof(code))
    result = libc.syscall(
        ctypes.c_long(_SECCOMP_CALL[machine]),
        ctypes.c_long(_SECCOMP_SET_MODE_FILTER),
        ctypes.c_long(_SECCOMP_FILTER_FLAG_SPEC_ALLOW),
        ctypes.byref(program),
    )
    if result:
        raise OSError(ctypes.get_errno(), "seccomp(SECCOMP_SET_MODE_FILTER)")
