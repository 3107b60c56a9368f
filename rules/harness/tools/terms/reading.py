"""Reading a candidate's source: what breaks it, or takes it too long, is the source's.

A gate that fails to read a source says nothing about it, so whoever wants a source left unjudged
would look for what its reader trips over.
"""

from __future__ import annotations

import errno
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 50.0
"""Of this process's own processor time, so that a busy machine blames no source: a module of 1 MiB
takes less than half of it. Below the wall time that any compile gate has."""

_UNREADABLE: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    StopIteration,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
)
_OF_NAMES = frozenset(
    {
        errno.EFBIG,
        errno.EILSEQ,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
    }
)
"""What the system says of names and sizes that a source can choose; of the rest it cannot."""


class TooLong(Exception):  # noqa: N818 - as judges call it
    """Reading a source has taken this process too long."""


@contextmanager
def own_time() -> Iterator[None]:
    """Raise ``TooLong`` in the main thread once this process has computed for ``SECONDS``.

    It is raised again each second: other threads may go on, and be waited for.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TooLong(f"reading it takes more than {SECONDS:g} s of processor time")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, SECONDS, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def can_blame_source(error: Exception) -> bool:
    """Whether a source may have provoked the error: to be asked of a trivial source, too."""
    if isinstance(error, OSError):
        return error.errno in _OF_NAMES
    return isinstance(error, (TooLong, *_UNREADABLE))


def told(error: Exception) -> str:
    """A line about the error."""
    name = type(error).__name__
    said = (error.strerror or "") if isinstance(error, OSError) else str(error)
    if isinstance(error, TooLong):
        return f"cannot be read: {said}"
    return f"cannot be read: {name}: {said[:500]}" if said else f"cannot be read: {name}"
