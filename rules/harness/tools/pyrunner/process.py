"""The Python runner: the process that holds a Triton or PyTorch candidate.

It is forked warm from the launcher, inside its sandbox, and speaks the protocol of the
native runner. Nothing here is secret or trusted: the candidate shares this interpreter.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from base.program import Program, RunnerPolicy
from runners import confinement, lockdown, native_start
from runners.protocol import CONTROL_FD, SIZE, FaultCode, Kind, Message

from pyrunner.calls import Calls, Ground
from pyrunner.excerpt import chain, excerpt
from pyrunner.host import Host
from pyrunner.module import Entry, load_entry

_FDS = 3
_ALLOCATOR_COMPLAINTS = (
    "can't allocate memory",
    "Cannot allocate memory",
    "CUDA out of memory",
    "CUDA error: out of memory",
)
_WITHOUT_GRAPHS = ("default", "max-autotune-no-cudagraphs")
_DEVICE_COMPLAINTS = {
    "an illegal memory access was encountered": 700,
    "misaligned address": 716,
    "unspecified launch failure": 719,
}
_CODES = {
    ("pyrunner.module", "MissingEntry"): FaultCode.MISSING_ENTRY,
    ("pyrunner.calls", "WrongShape"): FaultCode.SHAPE,
    ("pyrunner.calls", "WrongDtype"): FaultCode.DTYPE,
    ("triton_cpu.bounds", "OutOfBoundsError"): FaultCode.BOUNDS,
    ("triton_cpu.builder", "UnsupportedOperationError"): FaultCode.UNSUPPORTED,
    ("triton_cpu.rewrite", "KernelSourceError"): FaultCode.UNSUPPORTED,
}


def run(program: Program, policy: RunnerPolicy, control: int, output: int) -> int:
    """Serve the judge until BYE; called in a fresh sandbox, right after the fork."""
    native_start.arrange({CONTROL_FD: control, 1: output, 2: output})
    _settle(confinement.environment(program, policy))
    torch.set_num_threads(1)  # a sum's order, and a busy machine, must not decide anything
    confinement.limit_address_space(program, policy)
    # What runs on a device is compiled when it is first called, by programs.
    lockdown.install(lockdown.assemble(children=program.on_device))
    ground = _ground(program, policy)
    with socket.socket(fileno=CONTROL_FD) as judge:
        server = _Server(program, judge, ground)
        server.reply(Kind.READY)
        server.serve()
    return 0


def _ground(program: Program, policy: RunnerPolicy) -> Ground:
    """Make ready for what the program runs on, with launches or without."""
    if program.on_device:
        if not policy.launches:
            importlib.import_module("pyrunner.launches").leave_out()
        device: Ground = importlib.import_module("pyrunner.device").Device(program)
        return device
    if program.abi == "python" and importlib.util.find_spec("triton_cpu"):
        importlib.import_module("triton_cpu.interpreter").install(launches=policy.launches)
    return Host()


class _Server:
    """Answers the judge's requests."""

    def __init__(self, program: Program, judge: socket.socket, ground: Ground) -> None:
        self._program = program
        self._ground = ground
        self._path = confinement.candidate_path(program)
        self._judge = judge
        self._nonce = 0
        self._awake = False
        self._entry: Entry | None = None
        self._calls: Calls | None = None

    def serve(self) -> NoReturn:
        """Answer until BYE, or until the judge is gone."""
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
        """The next request: asleep, or awake when the judge has asked for that."""
        awake, self._awake = self._awake, False
        while True:
            with contextlib.suppress(BlockingIOError):
                flags = socket.MSG_DONTWAIT if awake else 0
                data, fds, _, _ = socket.recv_fds(self._judge, SIZE, _FDS, flags)
                return data, fds

    def reply(self, kind: Kind, *values: int) -> None:
        """Answer the request in hand."""
        self._judge.sendall(Message(kind, self._nonce, values).encode())

    def _obey(self, request: Message, fds: list[int]) -> None:
        match request.kind:
            case Kind.START:
                self._entry = _compiled(self._program, load_entry(self._program, self._path))
                gc.freeze()  # later collections look at what the calls have made, no more
                self.reply(Kind.READY)
            case Kind.LOAD:
                assert self._entry is not None
                self._calls = None
                self._calls = Calls(self._program.abi, self._entry, fds, self._ground)
                self.reply(Kind.READY, 0)
            case Kind.RUN:
                assert self._calls is not None
                calls = request.values[0]
                self.reply(Kind.DONE, calls, self._calls.run(calls))
            case Kind.ARM:
                self._awake = True
                self.reply(Kind.READY)
            case Kind.REPLAY:
                assert self._calls is not None
                elapsed = self._calls.replay(request.values[0])
                calls = 0 if elapsed is None else request.values[0]
                self.reply(Kind.DONE, calls, elapsed or 0)
            case Kind.EMPTY:
                self.reply(Kind.DONE, 0, self._calls.run(0) if self._calls else 0)
            case Kind.COLLECT:
                assert self._calls is not None
                self._calls.collect()
                self.reply(Kind.READY)
            case _:
                self.reply(Kind.GONE)
                os._exit(0)  # without exit handlers: the candidate may have installed some

    def _fail(self, error: BaseException) -> NoReturn:
        sys.stdout.flush()
        text = excerpt(error, self._path)
        os.write(2, text.encode(errors="replace"))
        self.reply(Kind.FAULT, *_code(error))
        os._exit(1)


def _compiled(program: Program, entry: Entry) -> Entry:
    """The entry, through ``torch.compile`` where the program asks for one of its modes."""
    if not program.mode:
        return entry
    compiled: Entry = torch.compile(entry, mode=program.mode, dynamic=False)
    return compiled if program.mode in _WITHOUT_GRAPHS else _copied(compiled)


def _copied(compiled: Entry) -> Entry:
    """What is compiled into graphs of its own overwrites its last results with the next."""

    begin: Callable[[], None] = torch.compiler.cudagraph_mark_step_begin

    def call(**arguments: Any) -> Any:
        begin()
        return {name: result.clone() for name, result in compiled(**arguments).items()}

    return call


def _code(error: BaseException) -> tuple[int, ...]:
    """The fault's code, with the device's own behind it where that is what failed."""
    for cause in chain(error):
        text = str(cause)
        if isinstance(cause, MemoryError) or any(c in text for c in _ALLOCATOR_COMPLAINTS):
            return (FaultCode.MEMORY,)
        for said, number in _DEVICE_COMPLAINTS.items():
            if said in text:
                return (FaultCode.LAUNCH, number)
        kind = type(cause)
        if (kind.__module__, kind.__name__) in _CODES:
            return (_CODES[kind.__module__, kind.__name__],)
    return (FaultCode.EXCEPTION,)


def _settle(environment: dict[str, str]) -> None:
    """Drop what the fork has inherited and a program should not find."""
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for the life of the process
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["runner"]
    os.environ.clear()
    os.environ.update(environment)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
