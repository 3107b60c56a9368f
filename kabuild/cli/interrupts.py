"""Ctrl-C and other signals that end kabuild, outside builds.

Imports little, since it runs before all else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

TYPE_CHECKING = False  # as in kabuild/__init__.py
if TYPE_CHECKING:
    from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)

_INTERRUPTED = 8
"""``ExitCode.INTERRUPTED``, whose module is not imported yet."""


def heed_signals() -> None:
    """Let a signal raise KeyboardInterrupt, and a second one end the process at once.

    This also holds if SIGINT was ignored, as in a script's ``&``: builds react to it, and so must
    what precedes them. Where Python cannot raise what a signal raises (callbacks of the garbage
    collector and of the import system), the process ends instead of printing a trace and going on.
    """
    taken = False

    def on_signal(_: int, __: FrameType | None) -> None:
        nonlocal taken
        if taken:
            os._exit(say_interrupted())
        taken = True
        raise KeyboardInterrupt

    for number in heeded():
        signal.signal(number, on_signal)
    sys.unraisablehook = _end_if_interrupted


def heeded() -> tuple[signal.Signals, ...]:
    """The signals that stop kabuild: SIGHUP is not one under nohup, which ignores it."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return SIGNALS[:-1] if ignored else SIGNALS


def say_interrupted() -> int:
    """Write a line to stderr, past its buffers, which may be in an odd state; the exit code."""
    with contextlib.suppress(OSError):  # stderr is closed
        os.write(2, b"interrupted\n")
    return _INTERRUPTED


def _end_if_interrupted(found: sys.UnraisableHookArgs) -> None:
    if issubclass(found.exc_type, KeyboardInterrupt):
        os._exit(say_interrupted())
    sys.__unraisablehook__(found)
