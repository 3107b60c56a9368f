"""The launcher process: forks runners on request, and knows nothing else."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import NoReturn

import namespaces  # type: ignore[import-not-found]
from base.program import Program, RunnerPolicy

from runners import confinement, native_start, warden
from runners.errand import Errand
from runners.errand import run as run_errand

_REQUEST_BYTES = 1 << 16
_PR_SET_PDEATHSIG = 1
_PRELOADED = {
    "hip": (),
    "torch": ("torch", "pyrunner.process"),
    "python": ("torch", "triton", "pyrunner.process"),
}
_ONLY_ON_CPU = {"python": ("triton_cpu.interpreter",)}


def serve(judge: socket.socket) -> NoReturn:
    """Serve requests until the judge hangs up; then end, and every runner with it."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the judge decides what an interrupt means
        while True:
            data, fds, _, _ = socket.recv_fds(judge, _REQUEST_BYTES, 3)
            if not data:
                code = 0
                break
            judge.send(_launch(data, fds))
            _bury()
    finally:
        os._exit(code)


def _launch(data: bytes, fds: list[int]) -> bytes:
    """Start one runner: ``ok``, or what prevented it."""
    try:
        request = json.loads(data)
        program = Program(**request["program"])
        policy = RunnerPolicy(**request["policy"])
        errand = Errand(**request["errand"]) if request["errand"] else None
        control, orders, output = fds
        _preload(program)
        namespaces.fork_contained(
            confinement.view(program, policy, errand.binds if errand else ()),
            confinement.limits(program, policy),
            _entrance(program, policy, errand, control, output),
            keep_fds=(control, output),
            seccomp="strict",
            supervisor=partial(warden.supervise, fd=orders),
            supervisor_fds=(orders,),
        )
    except (OSError, ImportError, ValueError) as error:
        return f"{type(error).__name__}: {error}".encode()[:_REQUEST_BYTES]
    finally:
        for fd in fds:
            os.close(fd)
    return b"ok"


def _entrance(
    program: Program, policy: RunnerPolicy, errand: Errand | None, control: int, output: int
) -> Callable[[], int]:
    """What the process in the sandbox does first."""
    if errand:
        environment = confinement.environment(program, policy)
        return partial(run_errand, errand, environment, output, control)
    if program.abi == "hip":
        return partial(native_start.run, program, policy, control, output)
    from pyrunner import process as pyrunner

    return partial(pyrunner.run, program, policy, control, output)


def _preload(program: Program) -> None:
    """Import, once, what Python runners of this ABI need; a warm process has it already."""
    wanted: tuple[str, ...] = _PRELOADED[program.abi]
    if not program.on_device:
        wanted += _ONLY_ON_CPU.get(program.abi, ())
    missing = [name for name in wanted if name not in sys.modules]
    for name in missing:
        if importlib.util.find_spec(name):
            importlib.import_module(name)
    if program.on_device and program.abi == "python":
        importlib.import_module("pyrunner.triton_driver").build()
    if missing:
        gc.collect()
        gc.freeze()  # so that a collection in a runner copies none of these pages


def _bury() -> None:
    """Reap the anchors of sandboxes that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
