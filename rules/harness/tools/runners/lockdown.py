"""The runner's own system-call filter, on top of the sandbox's.

The sandbox refuses calls that could escape it. This filter kills a runner that makes calls no
kernel needs. A runner on the CPU may make only calls that cannot delay a freeze for long; all
others fail as on an older Linux. A device driver's calls cannot be listed, so with a driver only
calls known to be unstoppable fail. The runner installs the filter itself, before the candidate is
loaded, because the native runner must still be executed. A candidate that the filter kills is
reported as FORBIDDEN_SYSCALL.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from runners.system_calls import (
    ALLOWED,
    CHILDREN,
    FATAL,
    INSPECTED,
    UNSTOPPABLE,
    UNSUPPORTED,
    WITHOUT_EFFECT,
)

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE_VFORK, _CLONE_THREAD = 0x4000, 0x10000
_AF_UNIX = 1  # the C library's name service uses it, but no such service is reachable
# NORMAL to DONTNEED but WILLNEED, FREE, DONTFORK to DOFORK, HUGEPAGE to KEEPONFORK, POPULATE_*:
# not those that move, merge or page out memory piece by piece.
_ADVICE = (0, 1, 2, 4, 8, 10, 11, 14, 15, 16, 17, 18, 19, 22, 23)
_WILLNEED = 3
# PDEATHSIG, DUMPABLE (GET), TIMERSLACK, NAME, CAPBSET (READ), NO_NEW_PRIVS, THP_DISABLE, VMA.
_PROCESS_OPTIONS = (1, 2, 3, 29, 30, 15, 16, 23, 38, 39, 41, 42, 0x53564D41)
# Common requests to files: TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX.
_FILE_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)

# Where the native runner maps the judge's buffers: bits 32 to 47 of their addresses. Only one place
# in its code may change their protection; the runner writes that address over these in the filter.
_WINDOW = (0x2000, 0x3000)
_PLACE = (0x4B425049, 0x4B425048)  # its lower and upper half

_LOAD, _JUMP_EQUAL, _JUMP_LEAST, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _CALLER, _ARGUMENTS = 0, 4, 8, 16
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def assemble(
    machine: str | None = None, *, on_device: bool = False, children: bool = False
) -> bytes:
    """The filter as an array of ``struct sock_filter``.

    ``on_device`` is for programs that use a driver. With ``children``, processes may be forked and
    programs executed, as code that compiles when it is called runs compilers. Raises OSError for a
    machine other than x86-64 and arm64.
    """
    name = machine or os.uname().machine
    if name not in _AUDIT_ARCH:
        raise OSError(f"no system-call filter for {name}")
    allow, absent = _instruction(_RETURN, _ALLOW), _fail(errno.ENOSYS)
    kill = _instruction(_RETURN, _KILL)
    code = _instruction(_LOAD, _ARCH) + _instruction(_JUMP_EQUAL, _AUDIT_ARCH[name], 1, 0) + kill
    code += _instruction(_LOAD, _NUMBER)
    for call, number in FATAL.numbers(name).items():
        if not (children and call in CHILDREN):
            code += _when(number, kill)
    for call, body in _inspections(on_device=on_device, children=children).items():
        code += _when(INSPECTED.numbers(name)[call], body)
    if on_device:
        return code + _each(UNSTOPPABLE.numbers(name), absent) + allow
    code += _each(ALLOWED.numbers(name), allow)
    code += _each(WITHOUT_EFFECT.numbers(name), _fail(0))
    code += _each(UNSUPPORTED.numbers(name), _fail(errno.EOPNOTSUPP))
    return code + absent


def install(code: bytes) -> None:
    """Put this process and its threads under the filter. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")


def _inspections(*, on_device: bool, children: bool) -> dict[str, bytes]:
    """The filter code for calls that depend on their arguments."""
    allow, kill = _instruction(_RETURN, _ALLOW), _instruction(_RETURN, _KILL)
    absent = _fail(errno.ENOSYS)
    bodies = {
        # clone3 hides its flags from a filter; without it libraries use clone. No limit counts the
        # memory of a memfd.
        "clone3": absent,
        "memfd_create": absent,
        "socket": _argument(0) + _when(_AF_UNIX, allow) + kill,
        "madvise": _argument(2) + _when(_WILLNEED, _fail(0)) + _one_of(_ADVICE, errno.EINVAL),
    }
    if not children:
        # CLONE_VFORK: a thread that starts another this way cannot be stopped until that one ends.
        refused = _instruction(_JUMP_SET, _CLONE_VFORK, 0, 1) + _fail(errno.EINVAL)
        thread = _instruction(_JUMP_SET, _CLONE_THREAD, 1, 0) + kill
        bodies["clone"] = _argument(0) + thread + refused + allow
    if not on_device:
        bodies["prctl"] = _argument(0) + _one_of(_PROCESS_OPTIONS, errno.EINVAL)
        bodies["ioctl"] = _argument(1) + _one_of(_FILE_REQUESTS, errno.ENOTTY)
        bodies |= dict.fromkeys(("mprotect", "mremap"), _own_memory())
    return bodies


def _own_memory() -> bytes:
    """Allow a call on memory outside the window, and on all memory from the one place."""
    first, end = _WINDOW
    allow = _instruction(_RETURN, _ALLOW)
    lower, upper = _PLACE
    from_there = _instruction(_LOAD, _CALLER) + _instruction(_JUMP_EQUAL, lower, 0, 3)
    from_there += _instruction(_LOAD, _CALLER + 4) + _instruction(_JUMP_EQUAL, upper, 0, 1) + allow
    from_there += _fail(errno.EACCES)
    inside = _instruction(_JUMP_LEAST, first, 0, 1 + len(from_there) // 8)
    inside += _instruction(_JUMP_LEAST, end, len(from_there) // 8, 0)
    return _instruction(_LOAD, _ARGUMENTS + 4) + inside + from_there + allow


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _fail(number: int) -> bytes:
    """Return an error; with 0, success without any effect."""
    return _instruction(_RETURN, _ERRNO | number)


def _argument(index: int) -> bytes:
    """Load the low 32 bits of an argument; both machines are little-endian."""
    return _instruction(_LOAD, _ARGUMENTS + 8 * index)


def _when(value: int, body: bytes) -> bytes:
    """Run ``body``, which must return, if the loaded value equals ``value``; else skip it."""
    return _instruction(_JUMP_EQUAL, value, 0, len(body) // 8) + body


def _each(numbers: dict[str, int], body: bytes) -> bytes:
    return b"".join(_when(number, body) for number in numbers.values())


def _one_of(values: tuple[int, ...], error: int) -> bytes:
    """Allow a call if the loaded value is among ``values``."""
    allowed = b"".join(_when(value, _instruction(_RETURN, _ALLOW)) for value in values)
    return allowed + _fail(error)
