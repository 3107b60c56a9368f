"""A session's compilers and judges: processes with a directory each, several at once."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

Verdict = dict[str, Any]

_MOST_AT_ONCE = 8


class CheckError(Exception):
    """Nothing was judged: the machine or the task failed, not the kernel."""


@dataclass(frozen=True)
class Job:
    """A running compiler or judge: its process, directory and output."""

    pid: int
    job: Path
    stderr: Path

    def wait(self, seconds: float, what: str) -> Verdict:
        """The verdict that it has written when it ends.

        After ``seconds`` it is killed. Raises CheckError then, and if there is no verdict.
        """
        wait(self.pid, seconds, what)
        return _verdict(self)

    def end(self) -> None:
        """Kill it, and remove its directory."""
        _end(self.pid)
        self.remove()

    def remove(self) -> None:
        """Remove its directory."""
        shutil.rmtree(self.job, ignore_errors=True)


class Several:
    """Jobs that run at once. A context manager, which ends with the last of them.

    After an exception, those that are left are killed and removed.
    """

    def __init__(self) -> None:
        self._width = max(1, min(_MOST_AT_ONCE, len(os.sched_getaffinity(0)) // 2))
        self._running: list[tuple[Job, Callable[[Job], None]]] = []

    def __enter__(self) -> Self:
        return self

    def add(self, start: Callable[[], Job], finish: Callable[[Job], None]) -> None:
        """Start a job once there is room for it; ``finish`` has to wait for its end, later."""
        while len(self._running) >= self._width:
            self._finish()
        self._running.append((start(), finish))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            while self._running and kind is None:
                self._finish()
        finally:
            for left in self._running:
                left[0].end()

    def _finish(self) -> None:
        job, finish = self._running.pop(0)
        finish(job)


def fork(child: Callable[[], None]) -> int:
    """Run ``child`` in a fork; its pid."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child()
            code = 0
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        except Exception:  # noqa: BLE001 - said on stderr, which is what becomes of it
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def wait(pid: int, seconds: float, what: str) -> None:
    """Wait until it ends; after ``seconds``, kill it and raise CheckError."""
    deadline = time.monotonic() + seconds
    fd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        ended = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    finally:
        os.close(fd)
    if not ended:
        _end(pid)
        raise CheckError(f"{what} took more than {seconds:g} s")
    os.waitpid(pid, 0)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _verdict(job: Job) -> Verdict:
    try:
        value = json.loads((job.job / "out" / "verdict.json").read_bytes())
    except (OSError, ValueError):
        said = job.stderr.read_text(errors="replace").strip() if job.stderr.exists() else ""
        raise CheckError(said.splitlines()[-1] if said else "no verdict was given") from None
    assert isinstance(value, dict)
    return value
