"""The launcher process: forks runners on request, and knows nothing else."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import NoReturn

import namespaces  # type: ignore[import-not-found]
from base.device_platform import device_platform
from base.program import MachineFault, Program, RunnerPolicy

from runners import confinement, driver_front, native_start, warden
from runners.supervised_run import SupervisedRun
from runners.supervised_run import run as run_supervised

_REQUEST_BYTES = 1 << 16
_MOST_FDS = 5
_PR_SET_PDEATHSIG = 1
_PYTHON_RUNNER = "pyrunner.process"  # by name: a judge of HIP programs alone does not have it
_PRELOADED = {
    "hip": (),
    "torch": ("torch", _PYTHON_RUNNER),
    "python": ("torch", "triton", _PYTHON_RUNNER),
    "call": ("torch", _PYTHON_RUNNER, "pyrunner_call.called"),
}
_COMPILING = ("torch._dynamo", "torch._inductor.compile_fx")
_KEYS = (("triton.runtime.cache", "triton_key"), ("torch._inductor.codecache", "torch_key"))
"""Digests of the compilers' own files, which their caches need: up to a second in each process."""

_ONLY_ON_CPU = {"python": ("triton_apart.apart",)}


def serve(judge: socket.socket) -> NoReturn:
    """Serve requests until the judge hangs up; then end, together with every runner."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the judge decides what an interrupt means
        while True:
            data, fds, _, _ = socket.recv_fds(judge, _REQUEST_BYTES, _MOST_FDS)
            if not data:
                code = 0
                break
            if fds:
                judge.send(_launch(data, fds))
            else:
                _prepare(data)
            _bury()
    finally:
        driver_front.clean_up()
        os._exit(code)


def _prepare(data: bytes) -> None:
    """Import what runners will need; a failure is reported when a runner is started."""
    with contextlib.suppress(OSError, ImportError, ValueError, MachineFault):
        _ready(Program(**json.loads(data)), filtered=True)


def _ready(program: Program, *, filtered: bool) -> driver_front.Front | None:
    """Load what runners of ``program`` inherit; the filter first, so that the rest binds to it."""
    front = driver_front.front_of(program) if filtered else None
    _preload(program)
    return front


def _launch(data: bytes, fds: list[int]) -> bytes:
    """Start one runner; returns ``ok`` or the error."""
    try:
        request = json.loads(data)
        program = Program(**request["program"])
        policy = RunnerPolicy(**request["policy"])
        supervised = SupervisedRun(**request["supervised"]) if request["supervised"] else None
        control, orders, output, *_ = fds
        front = _ready(program, filtered=supervised is None)
        if front and program.abi == "hip":
            fds.append(front.open_driver())
        kept = (control, output, *fds[3:])
        namespaces.fork_contained(
            confinement.view(program, policy, supervised.binds if supervised else (), front),
            confinement.limits(program, policy),
            _entrance(program, policy, supervised, kept, front.folder if front else ""),
            keep_fds=kept,
            seccomp="strict",
            supervisor=partial(warden.supervise, fd=orders),
            supervisor_fds=(orders,),
        )
    except (OSError, ImportError, ValueError, MachineFault) as error:
        return f"{type(error).__name__}: {error}".encode()[:_REQUEST_BYTES]
    finally:
        for fd in fds:
            os.close(fd)
    return b"ok"


def _entrance(
    program: Program,
    policy: RunnerPolicy,
    supervised: SupervisedRun | None,
    fds: tuple[int, ...],
    driver_folder: str,
) -> Callable[[], int]:
    """The function that the process in the sandbox runs first.

    ``fds`` are its control socket and its output. With a launch filter, the filter's pages follow,
    and the driver for a native runner.
    """
    control, output, *filtering = fds
    if supervised:
        environment = confinement.environment(program, policy)
        return partial(run_supervised, supervised, environment, output, control)
    if program.abi == "hip":
        start = partial(native_start.run, driver_folder=driver_folder)
        return partial(start, program, policy, control, output, *filtering)
    pyrunner = importlib.import_module(_PYTHON_RUNNER)
    return partial(pyrunner.run, program, policy, control, output, *filtering)


def _preload(program: Program) -> None:
    """Import, once, what Python runners of this ABI need; a warm process has it already."""
    wanted: tuple[str, ...] = _PRELOADED[program.abi]
    if not program.on_device:
        wanted += _ONLY_ON_CPU.get(program.abi, ())
    if program.abi == "call" and confinement.mentions_triton(program.path):
        wanted += ("triton",) if program.on_device else ("triton_cpu.interpreter",)
    if program.mode:
        wanted += _COMPILING
    missing = [name for name in wanted if name not in sys.modules]
    with _without_driver(program) if program.mode else contextlib.nullcontext():
        for name in missing:
            importlib.import_module(name)
    for module, name in _KEYS if program.mode else ():
        with contextlib.suppress(ImportError, AttributeError, OSError):
            getattr(importlib.import_module(module), name)()
    if program.on_device and "triton" in wanted:
        driver = importlib.import_module("pyrunner_device.triton_driver")
        driver.build(program.platform, program.binaries)
    if missing:
        gc.collect()
        gc.freeze()  # so that a collection in a runner copies none of these pages


@contextlib.contextmanager
def _without_driver(program: Program) -> Iterator[None]:
    """Import device compilers before runners are forked, with the same effect as afterwards.

    One of these modules asks whether there is a device, and no fork can use the driver after that.
    """
    os.environ |= confinement.COMPILING  # read when they are imported
    torch = importlib.import_module("torch")
    device = getattr(torch, device_platform(program.platform).torch_device)
    asks = device.is_available
    device.is_available = lambda: True
    try:
        yield
    finally:
        device.is_available = asks


def _bury() -> None:
    """Reap the anchors of sandboxes that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
