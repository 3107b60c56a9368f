"""The Python runner: the process that holds a Triton or PyTorch candidate.

It is forked from a warm launcher, inside its sandbox, and uses the protocol of the native runner.
Nothing here is secret or trusted: the candidate shares this interpreter. Only a ``python`` program
on the CPU is imported in a process of its own (``triton_apart``).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import sys
from typing import NoReturn, Protocol

import torch
from base.device_platform import device_platform
from base.places import BINARIES
from base.program import Program, RunnerPolicy
from runners import confinement, driver_front, lockdown, native_start
from runners.protocol import CONTROL_FD, ORDERS_FD, RECORD_FD, SIZE, Kind, Message

from pyrunner.calls import Ground
from pyrunner.excerpt import excerpt
from pyrunner.faults import HostFault, code_of
from pyrunner.host import Host
from pyrunner.inside import Inside

_FDS = 5
_UNCOMPILED = {"TORCHDYNAMO_DISABLE": "1"}
"""On a CPU ``torch.compile`` would start a compiler, which the sandbox does not have."""


class Subject(Protocol):
    """The program under test, as the server uses it."""

    def start(self) -> None:
        """Import the program."""

    def load(self, fds: list[int]) -> None:
        """Map a config's buffers."""

    def run(self, calls: int, left_out: int = -1) -> int:
        """Make the calls of a batch; returns the time in ns.

        Launches of the call ``left_out`` have no effect, if the program's ground can suppress them.
        """

    def hold(self, fd: int) -> bool:
        """Prepare the gate in the page behind ``fd``; returns whether launches can wait for it."""

    def queue(self, calls: int, ticket: int) -> int:
        """Launch the calls of a batch behind the gate; returns the host time in ns."""

    def opened(self, ticket: int) -> int:
        """Wait until the queued calls are done, and report it; returns the device time in ns."""

    def replay(self, calls: int) -> int | None:
        """Like ``run``, but as one recorded graph; None if the launches cannot be recorded."""

    def collect(self) -> None:
        """Copy the results of the last batch's calls into the outputs of their slots."""


def run(program: Program, policy: RunnerPolicy, control: int, output: int, *pages: int) -> int:
    """Serve the judge until BYE; called in a new sandbox, right after the fork.

    All arguments but the first two are descriptors. ``pages`` are the launch filter's, if the
    launcher has put one in front of the driver.
    """
    found = dict(zip((ORDERS_FD, RECORD_FD), pages, strict=False))
    native_start.arrange({CONTROL_FD: control, 1: output, 2: output, **found})
    _settle(confinement.environment(program, policy))
    torch.set_num_threads(1)  # so that a sum's order and a busy machine do not change results
    subject = _apart(program, policy)
    confinement.limit_address_space(program, policy)
    if program.abi == "call" and not program.on_device:
        os.environ |= _UNCOMPILED
        _interpret(program)
    if subject is None:
        # Programs for a device are compiled at their first call, by child processes.
        on_device = program.on_device
        lockdown.install(lockdown.assemble(on_device=on_device, children=on_device))
        ground = _ground(program)
        if program.binaries:
            importlib.import_module("pyrunner_device.binaries").lay_out(BINARIES)
        if pages:
            candidate = confinement.candidate_path(program)
            driver_front.filter_launches(ORDERS_FD, RECORD_FD, candidate)
        subject = Inside(program, ground)
    with socket.socket(fileno=CONTROL_FD) as judge:
        server = _Server(program, judge, subject)
        server.reply(Kind.READY)
        server.serve()
    return 0


def _apart(program: Program, policy: RunnerPolicy) -> Subject | None:
    """Split the process in two for a Triton program on the CPU; None for all others."""
    if program.abi != "python" or program.on_device:
        return None
    apart = importlib.import_module("triton_apart.apart")
    divided: Subject = apart.divided(program, policy, CONTROL_FD)
    return divided


def _interpret(program: Program) -> None:
    """Run Triton's kernels, if the candidate has any, on the CPU."""
    if confinement.mentions_triton(confinement.candidate_path(program)):
        importlib.import_module("triton_cpu.interpreter").install()


def _ground(program: Program) -> Ground:
    """Prepare the host or the device that the program runs on."""
    if not program.on_device:
        return Host()
    device: Ground = importlib.import_module("pyrunner_device.device").Device(program)
    return device


class _Server:
    """Answers the judge's requests."""

    def __init__(self, program: Program, judge: socket.socket, subject: Subject) -> None:
        self._subject = subject
        self._path = confinement.candidate_path(program)
        platform = device_platform(program.platform) if program.on_device else None
        self._complaints = platform.out_of_memory if platform else ()
        self._judge = judge
        self._nonce = 0
        self._awake = False
        self._made = 0, 0
        self._failure: BaseException | None = None

    def serve(self) -> NoReturn:
        """Answer requests until BYE, or until the judge hangs up."""
        while True:
            data, fds = self._receive()
            if not data:
                os._exit(1)
            request = Message.decode(data)
            self._nonce = request.nonce
            try:
                self._obey(request, fds)
            except BaseException as error:  # noqa: BLE001 - a candidate may raise anything
                self._fail(error)

    def _receive(self) -> tuple[bytes, list[int]]:
        """Wait for the next request: asleep, or without sleeping right after ARM."""
        awake, self._awake = self._awake, False
        while True:
            with contextlib.suppress(BlockingIOError):
                flags = socket.MSG_DONTWAIT if awake else 0
                data, fds, _, _ = socket.recv_fds(self._judge, SIZE, _FDS, flags)
                return data, fds

    def reply(self, kind: Kind, *values: int) -> None:
        """Answer the current request."""
        self._judge.sendall(Message(kind, self._nonce, values).encode())

    def _obey(self, request: Message, fds: list[int]) -> None:
        match request.kind:
            case Kind.START:
                self._subject.start()
                self.reply(Kind.READY)
            case Kind.LOAD:
                self._subject.load(fds)
                self.reply(Kind.READY, 0)
            case Kind.RUN:
                calls, left_out, *_ = request.values
                self.reply(Kind.DONE, calls, self._subject.run(calls, left_out))
            case Kind.ARM:
                self._awake = True
                self.reply(Kind.READY)
            case Kind.GATE | Kind.SHUT | Kind.WAIT:
                self._obey_gate(request, fds)
            case Kind.REPLAY:
                elapsed = self._subject.replay(request.values[0])
                calls = 0 if elapsed is None else request.values[0]
                self.reply(Kind.DONE, calls, elapsed or 0)
            case Kind.EMPTY:
                self.reply(Kind.DONE, 0, self._subject.run(0))
            case Kind.COLLECT:
                self._subject.collect()
                self.reply(Kind.READY)
            case _:
                self.reply(Kind.GONE)
                os._exit(0)  # without exit handlers: the candidate may have installed some

    def _obey_gate(self, request: Message, fds: list[int]) -> None:
        match request.kind:
            case Kind.GATE:
                self.reply(Kind.READY, int(self._subject.hold(fds[0])))
            case Kind.SHUT:
                self._queue(*request.values[:2])
            case _:
                if self._failure is not None:
                    raise self._failure
                self.reply(Kind.DONE, *self._made)

    def _queue(self, calls: int, ticket: int) -> None:
        """Answer once all calls are queued. WAIT then reports whether they failed later."""
        launch_ns = self._subject.queue(calls, ticket)
        self.reply(Kind.QUEUED, calls, launch_ns)
        self._failure = None
        try:
            self._made = calls, self._subject.opened(ticket)
        except BaseException as error:  # noqa: BLE001 - a candidate's kernels may fail
            self._failure = error

    def _fail(self, error: BaseException) -> NoReturn:
        sys.stdout.flush()
        if not isinstance(error, HostFault):
            os.write(2, excerpt(error, self._path).encode(errors="replace"))
        self.reply(Kind.FAULT, *code_of(error, self._complaints))
        os._exit(1)


def _settle(environment: dict[str, str]) -> None:
    """Drop inherited state that a program should not find."""
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for the life of the process
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["runner"]
    os.environ.clear()
    os.environ.update(environment)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
