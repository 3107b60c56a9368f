"""From the fork of a runner process to the native runner's first instruction."""

from __future__ import annotations

import fcntl
import os

from base.program import Program, RunnerPolicy

from runners import confinement, lockdown
from runners.protocol import CONTROL_FD, DRIVER_FD, FILTER_FD, ORDERS_FD, RECORD_FD


def run(
    program: Program,
    policy: RunnerPolicy,
    control: int,
    output: int,
    *filtering: int,
    driver_folder: str = "",
) -> int:
    """Become the native runner; called in its sandbox. Returns only by raising.

    The runner finds its control socket and its system-call filter at fixed descriptors. With a
    launch filter it also finds ``filtering``: the filter's two pages and the driver. Its loader
    also searches ``driver_folder``.
    """
    read_end, write_end = os.pipe()
    os.write(write_end, lockdown.assemble(on_device=program.on_device))
    os.close(write_end)
    found = dict(zip((ORDERS_FD, RECORD_FD, DRIVER_FD), filtering, strict=False))
    arrange({CONTROL_FD: control, FILTER_FD: read_end, 1: output, 2: output, **found})
    confinement.limit_address_space(program, policy)
    runner = confinement.native_runner_path(program)
    argv = [runner, confinement.candidate_path(program), *confinement.library_paths(program)]
    variables = confinement.environment(program, policy, driver_folder)
    os.execve(runner, argv, variables)  # noqa: S606 - there is no shell here


def arrange(fds: dict[int, int]) -> None:
    """Move descriptors to fixed numbers: ``{number: current number}``."""
    above = max(fds) + 1
    copies = {number: fcntl.fcntl(fd, fcntl.F_DUPFD, above) for number, fd in fds.items()}
    for number, copy in copies.items():
        os.dup2(copy, number)
        os.close(copy)
    for fd in set(fds.values()) - set(fds):
        os.close(fd)
