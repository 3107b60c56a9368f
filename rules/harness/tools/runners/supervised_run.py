"""Runs a tool in a sandbox until it ends; the tool starts the candidate and leaves a report.

A runner answers the judge; this is for tools that start the candidate's process themselves and
watch it. Their output and their report have passed through the candidate's sandbox, and are
as untrusted as the candidate.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from base.granted_time import GRANTED, PIECE_SECONDS

from runners.warden import Unstoppable, Warden

_CHUNK = 1 << 16
_FAILED = 127
_GRACE_SECONDS = 5.0  # for a process to end that has closed its outputs


@dataclass(frozen=True)
class SupervisedRun:
    """The program to run.

    Attributes:
        argv: the program, by its path in the sandbox, and its arguments.
        binds: additional paths that it sees besides a runner's: pairs of path here and there.
        report: the path in the sandbox of the report that it writes.
    """

    argv: tuple[str, ...]
    binds: tuple[tuple[str, str], ...]
    report: str


@dataclass(frozen=True)
class Returned:
    """The result of a run.

    Attributes:
        status: its wait status; None if it was killed because time was up.
        said: the beginning of its output.
        report: the beginning of its report; empty if it left none.
    """

    status: int | None
    said: bytes
    report: bytes


def run(supervised: SupervisedRun, environment: Mapping[str, str], output: int, report: int) -> int:
    """Run the program and send its report; called in its sandbox. Returns its exit code."""
    for pipe in (output, report):
        os.set_inheritable(pipe, False)  # noqa: FBT003 - the candidate must not keep it open
    pid = os.fork()
    if pid == 0:
        _become(supervised, environment, output)
    os.close(output)
    _, status = os.waitpid(pid, 0)
    try:
        content = Path(supervised.report).read_bytes()
    except OSError:
        content = b""
    with os.fdopen(report, "wb") as judge:
        judge.write(content)
    return status >> 8 if os.WIFEXITED(status) else _FAILED


def _become(supervised: SupervisedRun, environment: Mapping[str, str], output: int) -> NoReturn:
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.execve(supervised.argv[0], supervised.argv, environment)  # noqa: S606 - there is no shell here
    finally:
        os._exit(_FAILED)


def await_return(
    warden: Warden, output: int, report: int, *, seconds: float, most_bytes: int
) -> Returned:
    """Wait for the report, or kill the program when time is up.

    ``most_bytes`` of each pipe are kept. Raises MachineFault if the warden is lost.
    """
    kept = {output: b"", report: b""}
    deadline = GRANTED.now() + seconds
    poll = select.poll()
    for pipe in kept:
        os.set_blocking(pipe, False)
        poll.register(pipe, select.POLLIN)
    reported = False
    while not reported:
        left, sleep = deadline - GRANTED.now(), GRANTED.sleep()
        if left <= 0:
            _killed(warden)
            return Returned(None, kept[output], b"")
        ready = poll.poll(min(left, PIECE_SECONDS) * 1000)
        sleep.over()
        for pipe, _ in ready:
            data = os.read(pipe, _CHUNK)
            kept[pipe] = (kept[pipe] + data)[:most_bytes]
            if not data:
                poll.unregister(pipe)
                reported |= pipe == report
    # A process left behind by the program may hold its output open.
    with contextlib.suppress(BlockingIOError):
        while len(kept[output]) < most_bytes and (data := os.read(output, _CHUNK)):
            kept[output] = (kept[output] + data)[:most_bytes]
    status = warden.wait(_GRACE_SECONDS)
    return Returned(_killed(warden) if status is None else status, kept[output], kept[report])


def _killed(warden: Warden) -> int | None:
    """The wait status of a program that had to be killed; None if even that takes too long."""
    try:
        return warden.kill()
    except Unstoppable:
        return None
