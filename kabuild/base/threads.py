"""Starts threads only where there is room for them.

CPython waits for ever for a thread that finds no memory before it has begun, as under a small
``ulimit -v``. So the room is asked for first.
"""

from __future__ import annotations

import mmap
import resource
import threading

from kabuild.base.errors import InfraError, Reason

_USUAL_STACK = 8 << 20
_OWN = 4 << 20
"""More than a thread needs besides its stack before its first line runs."""

_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE: addresses, no memory


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises InfraError if the machine has no room for it."""
    try:
        mmap.mmap(-1, _stack() + _OWN, flags=_FLAGS).close()
        thread.start()
    except (OSError, MemoryError):
        why, hint = "there is no room for its stack", "see 'ulimit -v' and 'ulimit -d'"
    except RuntimeError as error:  # Python's exception for EAGAIN
        why, hint = str(error), "see 'ulimit -u', or run fewer at a time with --jobs"
    else:
        return
    raise InfraError(Reason.NO_RESOURCES, f"no thread can be started: {why}", hint=hint)


def _stack() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _USUAL_STACK if limit == resource.RLIM_INFINITY else limit
