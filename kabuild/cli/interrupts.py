"""Ctrl-C and SIGTERM while nothing is being built; imports little, as it comes before all else."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

TYPE_CHECKING = False  # as in kabuild/__init__.py
if TYPE_CHECKING:
    from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_INTERRUPTED = 8
"""``ExitCode.INTERRUPTED``, whose module is not imported yet."""


def heed_signals() -> None:
    """From now on a signal raises KeyboardInterrupt, and a second one ends the process at once.

    So it is too where SIGINT was ignored, as in what a script starts with ``&``: a build heeds
    it there, hence what comes before the build does. Where Python cannot raise what a signal
    raises (callbacks of the garbage collector and of the import system), the process ends
    instead of printing a trace and going on.
    """
    taken = False

    def on_signal(_: int, __: FrameType | None) -> None:
        nonlocal taken
        if taken:
            os._exit(say_interrupted())
        taken = True
        raise KeyboardInterrupt

    for number in SIGNALS:
        signal.signal(number, on_signal)
    sys.unraisablehook = _end_if_interrupted


def say_interrupted() -> int:
    """One line on stderr, without buffers that may be in an odd state; the exit code."""
    with contextlib.suppress(OSError):  # nobody listens any more
        os.write(2, b"interrupted\n")
    return _INTERRUPTED


def _end_if_interrupted(found: sys.UnraisableHookArgs) -> None:
    if issubclass(found.exc_type, KeyboardInterrupt):
        os._exit(say_interrupted())
    sys.__unraisablehook__(found)
