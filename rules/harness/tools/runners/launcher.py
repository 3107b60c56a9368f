"""Starts runners, through a process that was forked before the judge knew any secret.

A runner is a copy of the process that forks it. The judge reads its specification, with the
salt and the unseen configs, only after ``Launcher.start``. From then on the launcher process
learns only what it is sent to start a runner.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

from base.program import MachineFault, Program, RunnerPolicy, Signature

from runners import launcher_process
from runners.channel import Channel
from runners.conversation import Conversation
from runners.runner_process import Runner
from runners.supervised_run import Returned, SupervisedRun, await_return
from runners.warden import Warden

if TYPE_CHECKING:
    from runners.launch_pages import LaunchPages

_START_SECONDS = 120.0  # the first Python runner waits for torch to be imported


class Launcher:
    """The judge's side of the launcher process. A context manager."""

    def __init__(self, pid: int, link: socket.socket) -> None:
        self._pid = pid
        self._link = link
        self._turn = threading.Lock()
        link.settimeout(_START_SECONDS)

    @classmethod
    def start(cls) -> Launcher:
        """Fork the launcher process. Call it before anything secret is read."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            ours.close()
            launcher_process.serve(theirs)
        theirs.close()
        return cls(pid, ours)

    def prepare(self, program: Program) -> None:
        """Make the launcher import what the program's runners need. Does not wait."""
        with contextlib.suppress(OSError):  # reported when a runner is requested
            self._link.send(json.dumps(dataclasses.asdict(program)).encode())

    def open(
        self, program: Program, signature: Signature, policy: RunnerPolicy | None = None
    ) -> Runner:
        """A fresh runner process with the candidate loaded, in its own sandbox.

        Raises CandidateFault if the candidate fails to load, MachineFault if the runner
        cannot be started.
        """
        policy = policy or RunnerPolicy()
        control, its_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        orders, its_orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, its_output = os.pipe2(os.O_CLOEXEC)
        channel = Channel(control, output, policy.stderr_bytes)
        conversation = Conversation(channel, Warden(orders), policy.cpu_seconds)
        launches = _pages(program, policy)
        pages = launches.fds if launches else ()
        lent = (its_control.fileno(), its_orders.fileno(), its_output, *pages)
        try:
            self._request(program, policy, lent)
        except BaseException:
            conversation.hang_up()
            if launches:
                launches.close()
            raise
        finally:
            its_control.close()
            its_orders.close()
            os.close(its_output)
        runner = Runner(program, signature, policy, conversation, launches)
        runner.start()
        return runner

    def send(
        self, supervised: SupervisedRun, program: Program, policy: RunnerPolicy, seconds: float
    ) -> Returned:
        """Run a tool over the candidate, in its own sandbox, until it ends or time is up.

        May be called by several threads at once. Raises MachineFault if it cannot be started.
        """
        report, its_report = os.pipe2(os.O_CLOEXEC)
        output, its_output = os.pipe2(os.O_CLOEXEC)
        orders, its_orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        warden = Warden(orders)
        try:
            try:
                lent = (its_report, its_orders.fileno(), its_output)
                self._request(program, policy, lent, supervised)
            finally:
                its_orders.close()
                os.close(its_report)
                os.close(its_output)
            return await_return(
                warden, output, report, seconds=seconds, most_bytes=policy.stderr_bytes
            )
        finally:
            warden.close()
            os.close(report)
            os.close(output)

    def close(self) -> None:
        """End the launcher process and with it every runner; may be called twice."""
        self._link.close()
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _request(
        self,
        program: Program,
        policy: RunnerPolicy,
        fds: tuple[int, ...],
        supervised: SupervisedRun | None = None,
    ) -> None:
        order = {
            "program": dataclasses.asdict(program),
            "policy": dataclasses.asdict(policy),
            "supervised": dataclasses.asdict(supervised) if supervised else None,
        }
        try:
            with self._turn:
                socket.send_fds(self._link, [json.dumps(order).encode()], list(fds))
                reply = self._link.recv(1 << 16)
        except OSError as error:
            raise MachineFault(f"the launcher is gone: {error}") from error
        if reply != b"ok":
            reason = reply.decode(errors="replace") or "the launcher died"
            raise MachineFault(f"a runner could not be started: {reason}")


def _pages(program: Program, policy: RunnerPolicy) -> LaunchPages | None:
    """The pages of the program's launch filter; None without one."""
    if not program.launch_filter:
        return None
    from runners.launch_pages import LaunchPages

    return LaunchPages(policy)
