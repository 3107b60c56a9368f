"""Watches the process that runs a task's code, and says whose fault its end is.

A task's code may end the process of the judge: by the C function ``exit``, or by a wrong address.
So the judge is a fork; what it runs of the task stands in memory that both processes share.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
from collections.abc import Iterator

_SIZE = 4096
_PR_SET_PDEATHSIG = 1
_OF_LIMITS = (signal.SIGKILL, signal.SIGTERM, signal.SIGXCPU, signal.SIGXFSZ)
"""Signals by which others end a process, whatever it runs."""

_page: list[mmap.mmap] = []


@contextlib.contextmanager
def running(what: str) -> Iterator[None]:
    """Note that code of the task runs in the body: ``tasks/x/reference.py:7: reference()``."""
    _note(what)
    try:
        yield
    finally:
        _note("")


def fork_judge() -> tuple[int, str] | None:
    """Go on in a child process, where None is returned; in this one, wait for it to end.

    Returns its exit code, and the line for people if the task's code ended it, else "". Ends by the
    signal that ended it otherwise.
    """
    page = mmap.mmap(-1, _SIZE)
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        _page[:] = [page]
        return None
    _, status = os.waitpid(child, 0)
    what = page[:].rstrip(b"\0").decode(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    if what and -code not in _OF_LIMITS:
        how = f"exit code {code}" if code >= 0 else _name(-code)
        return code, f"{what} ended its process ({how})"
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code, ""


def _note(what: str) -> None:
    for page in _page:
        page[:] = what.encode(errors="replace")[:_SIZE].ljust(_SIZE, b"\0")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
