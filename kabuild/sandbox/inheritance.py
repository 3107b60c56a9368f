"""Resets what a process inherits and a sandbox must not depend on.

Limits, signals that are ignored or blocked, a personality without random addresses, a scheduling
policy: all of them survive fork and exec, and would change what a command can do.

Two things stay, for they are how users share a machine. Which processors may be used: how many is
in the key of every measurement (``cores`` of the platform). How nice to be: judge, baseline and
candidate are alike in it, and it slows them as other programs that run do.

Self-contained, because it runs inside a zygote.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

from .limits import lift_limits

_ASK = 0xFFFFFFFF
_DEFAULT = 0
_PR_SET_TIMERSLACK, _PR_SET_THP_DISABLE = 29, 41
_SLACK_NS = 50_000  # the kernel's own
_IGNORED_BY_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})

_libc = ctypes.CDLL(None, use_errno=True)


def settle() -> None:
    """Reset this process, and so its forks, to defaults. May restart it."""
    if _libc.personality(ctypes.c_ulong(_ASK)) != _DEFAULT:
        _libc.personality(ctypes.c_ulong(_DEFAULT))
        if _libc.personality(ctypes.c_ulong(_ASK)) == _DEFAULT:
            os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - it decides where memory is
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN and number not in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with contextlib.suppress(OSError):  # the kernel may refuse to leave a policy for idle times
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    _libc.prctl(_PR_SET_TIMERSLACK, _SLACK_NS, 0, 0, 0)
    _libc.prctl(_PR_SET_THP_DISABLE, 0, 0, 0, 0)
    os.umask(0o022)
    lift_limits()
