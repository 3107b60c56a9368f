"""The runner's own system-call filter, on top of the sandbox's.

The sandbox refuses what could leave it. This filter ends a runner that tries what no kernel
needs: another process, another program, somebody else's memory, a socket. It is installed by
the runner itself, because the native one must still be executed, and before the candidate is
loaded. A candidate that it kills is named FORBIDDEN_SYSCALL.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}
_CLONE, _CLONE3, _SOCKET, _MEMFD = (56, 220), (435, 435), (41, 198), (319, 279)
# Numbers on x86-64 and arm64; None where the call does not exist.
_FATAL: dict[str, tuple[int | None, int]] = {
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
}
_FATAL_X86 = {"fork": 57, "vfork": 58}
_EXECUTING = ("execve", "execveat")
_CLONE_THREAD = 0x10000
_AF_UNIX = 1  # what the C library asks its name service with; there is nobody to talk to

_LOAD, _JUMP_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _KILL, _NO_SUCH_CALL = 0x7FFF0000, 0x80000000, 0x00050000 | errno.ENOSYS
_NUMBER, _ARCH, _ARGUMENT = 0, 4, 16
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def assemble(machine: str | None = None, *, children: bool = False) -> bytes:
    """The filter as an array of ``struct sock_filter``.

    With ``children`` processes may be forked and programs executed, as compilers are by what
    compiles when it is called. Raises OSError for a machine other than x86-64 and arm64.
    """
    name = machine or os.uname().machine
    if name not in _COLUMN:
        raise OSError(f"no system-call filter for {name}")
    column = _COLUMN[name]
    allowed = _EXECUTING if children else ()
    fatal = [pair[column] for call, pair in _FATAL.items() if call not in allowed]
    fatal += _FATAL_X86.values() if name == "x86_64" and not children else ()
    kill = _instruction(_RETURN, _KILL)
    code = _instruction(_LOAD, _ARCH) + _instruction(_JUMP_EQUAL, _AUDIT_ARCH[name], 1, 0) + kill
    code += _instruction(_LOAD, _NUMBER)
    for number in fatal:
        if number is not None:
            code += _when(number, kill)
    # clone3 hides its flags from a filter; without it libraries use clone. A memfd is memory
    # that no limit counts.
    for call in (_CLONE3, _MEMFD):
        code += _when(call[column], _instruction(_RETURN, _NO_SUCH_CALL))
    if not children:
        code += _when(_CLONE[column], _unless(_JUMP_SET, _CLONE_THREAD, kill))
    code += _when(_SOCKET[column], _unless(_JUMP_EQUAL, _AF_UNIX, kill))
    return code + _instruction(_RETURN, _ALLOW)


def install(code: bytes) -> None:
    """Put this process and its threads to come under the filter. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _when(number: int, body: bytes) -> bytes:
    """Runs ``body``, which must return, for one system call; else skips it."""
    return _instruction(_JUMP_EQUAL, number, 0, len(body) // 8) + body


def _unless(test: int, value: int, otherwise: bytes) -> bytes:
    """Allows a call whose first argument passes the test."""
    allow = _instruction(_RETURN, _ALLOW)
    return _instruction(_LOAD, _ARGUMENT) + _instruction(test, value, 0, 1) + allow + otherwise
