"""Watches the process that runs a task's code, and decides whether its end is the task's fault.

A task's code may end the judge's process: by the C function ``exit``, or by a bad address. It may
also hang in a call that no Python signal handler interrupts, or close the file to which errors are
written. So the judge runs in a fork. Memory shared by both processes records which code of the task
runs and until when, and the task's mistake once one is known. The judge's output passes through
this process, which drops all but the beginning.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import select
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import NoReturn

_SIZE = 16384
_HEAD = struct.Struct("<Bdd")  # kind of text, start time, limit in seconds
_RUNNING, _BLAMED = 1, 2
_PR_SET_PDEATHSIG = 1
_OF_LIMITS = (signal.SIGKILL, signal.SIGXCPU)
"""Signals by which a machine may end any process."""

_GRACE_SECONDS = 10.0
"""Time for the process itself to report that a call takes too long, and to end."""

_POLL = 1.0
_PRINTED_BYTES = 1 << 20
_REST = 64  # reads, each of as much as a pipe holds

_page: list[mmap.mmap] = []
_leave = os._exit  # bound now: the task's code sees a different one


@contextlib.contextmanager
def running(what: str, seconds: float = 600.0) -> Iterator[None]:
    """Record that the body runs code of the task, such as ``tasks/x/reference.py:7: reference()``.

    It is killed and reported if it runs for much longer than ``seconds``.
    """
    _note(_RUNNING, what, seconds)
    try:
        yield
    finally:
        _note(0, "")


def blame(fault: str) -> None:
    """Record the task's mistake, which is reported however this process ends."""
    _note(_BLAMED, fault)


def fork_judge(seconds: float = _GRACE_SECONDS) -> tuple[int, str] | None:
    """Go on in a child process, where None is returned; in this one, wait for it to end.

    Returns the child's exit code, and a line for people if the task is at fault, else "". If a
    signal ended the child otherwise, this process ends by it too. ``seconds`` are granted beyond
    the time of each call.
    """
    page = mmap.mmap(-1, _SIZE)
    pipes = {stream: os.pipe() for stream in (1, 2)}
    child = os.fork()
    if child == 0:
        for stream, (ours, its) in pipes.items():
            os.dup2(its, stream)
            os.close(ours)
            os.close(its)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        _page[:] = [page]
        return None
    for _, its in pipes.values():
        os.close(its)
    late = _late(child, page, seconds, _Printed({pipes[1][0]: 1, pipes[2][0]: 2}))
    _, status = os.waitpid(child, 0)
    kind, what, _, limit = _read(page)
    code = os.waitstatus_to_exitcode(status)
    if kind == _BLAMED:
        return code, what
    if late:
        return code, f"{what} did not end within {limit:g} s"
    if kind == _RUNNING and -code not in _OF_LIMITS:
        how = f"exit code {code}" if code >= 0 else _name(-code)
        return code, f"{what} ended its process ({how})"
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code, ""


def end_judge(work: Callable[[], int]) -> NoReturn:
    """End this process with the exit code of ``work``, and run nothing else.

    Python would wait for threads that the task started, and call the exit handlers that it
    registered.
    """
    code = 1
    with contextlib.suppress(BaseException):
        try:
            code = work()
        except BaseException:  # noqa: BLE001 - as Python would end
            traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _leave(code)
    raise AssertionError("unreachable")


class _Printed:
    """The child's output, passed on up to a limit for each stream.

    Args:
        streams: the ends that are read here, and where the text of each goes.
    """

    def __init__(self, streams: dict[int, int]) -> None:
        self._streams = streams
        self._left = dict.fromkeys(streams, _PRINTED_BYTES)
        for end in streams:
            os.set_blocking(end, False)

    @property
    def open(self) -> list[int]:
        """The ends that may still have output."""
        return [*self._streams]

    def pass_on(self, end: int) -> bool:
        """Read the available output once; returns whether there was any."""
        try:
            text = os.read(end, 1 << 16)
        except BlockingIOError:
            return False
        if not text:
            del self._streams[end]
            os.close(end)
            return False
        kept = text[: self._left[end]]
        self._left[end] -= len(kept)
        with contextlib.suppress(OSError):  # as if the reader were gone
            while kept:
                kept = kept[os.write(self._streams[end], kept) :]
        return True

    def finish(self) -> None:
        """Read the rest of the child's output; other processes may hold these ends for longer."""
        for end in self.open:
            for _ in range(_REST):
                if not self.pass_on(end):
                    break
            if end in self._streams:
                os.close(end)


def _late(child: int, page: mmap.mmap, seconds: float, printed: _Printed) -> bool:
    """Wait for the child to end; kill it if the task's code hangs, and return whether it did."""
    ended = os.pidfd_open(child)
    try:
        while ended not in (ready := select.select([ended, *printed.open], [], [], _POLL)[0]):
            for end in ready:
                printed.pass_on(end)
            kind, _, since, limit = _read(page)
            if kind and time.monotonic() > since + limit + seconds:
                os.kill(child, signal.SIGKILL)
                return True
        return False
    finally:
        os.close(ended)
        printed.finish()


def _note(kind: int, what: str, seconds: float = 0.0) -> None:
    text = what.encode(errors="replace")[: _SIZE - _HEAD.size - 1]
    for page in _page:
        if page[0] == _BLAMED:
            return  # the first blame stays
        page[0] = 0  # so that the other process never reads half of each record
        page[_HEAD.size : _HEAD.size + len(text) + 1] = text + b"\0"
        page[: _HEAD.size] = _HEAD.pack(kind, time.monotonic(), seconds)


def _read(page: mmap.mmap) -> tuple[int, str, float, float]:
    kind, since, seconds = _HEAD.unpack(page[: _HEAD.size])
    text, _, _ = page[_HEAD.size :].partition(b"\0")
    return kind, text.decode(errors="replace"), since, seconds


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
