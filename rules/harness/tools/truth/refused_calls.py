"""Refuses calls that a task's code may not make in the judge's process, where they are made."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class RefusedError(BaseException):
    """Raised in place of a call. The task's own ``except`` must not catch it."""


_EVENTS = {
    "os.fork": "forks the judge's process: compute in it, or start a program by subprocess",
    "os.forkpty": "forks the judge's process: compute in it, or start a program by subprocess",
    "os.exec": "replaces the judge's process by a program: start it by subprocess",
    "resource.setrlimit": "changes the limits of the judge's process: leave them as they are",
    "sys.addaudithook": "adds an audit hook, which cannot be taken away: leave it out",
}
_SIGNALS = {"os.kill", "os.killpg", "signal.pthread_kill"}
_LIMITING = "resource.prlimit"
_WATCHED = {*_EVENTS, *_SIGNALS, _LIMITING}
_ENDS = "sends a signal to the judge's process, or to one of its own: raise an exception instead"

_inside = threading.local()
_others: set[int] = set()
_hooked: list[bool] = []


def hold() -> None:
    """Refuse signals to any current child of this process."""
    me = threading.get_native_id()
    listed = Path(f"/proc/self/task/{me}/children")
    _others.update(map(int, listed.read_text().split()) if listed.exists() else ())


@contextmanager
def refused() -> Iterator[None]:
    """Raise RefusedError for these calls in the body."""
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    _inside.at = True
    try:
        yield
    finally:
        _inside.at = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _WATCHED or not _inside.__dict__.get("at"):
        return  # nothing above needs Python's builtins, which the task may have replaced
    if event in _EVENTS:
        raise RefusedError(_EVENTS[event])
    if event in _SIGNALS and arguments[1] and not _is_own(event, arguments[0]):
        raise RefusedError(_ENDS)
    if event == _LIMITING and arguments[2] is not None:
        raise RefusedError(_EVENTS["resource.setrlimit"])


def _is_own(event: str, target: int) -> bool:
    """Whether the task's code itself started the process that gets the signal."""
    if event == "signal.pthread_kill" or target <= 1 or target in _others:
        return False
    try:
        if event == "os.killpg":
            return target != os.getpgid(0)
        status = Path(f"/proc/{target}/stat").read_text()
    except OSError:
        return True  # there is no such process
    return int(status.rpartition(")")[2].split()[1]) == os.getpid()
