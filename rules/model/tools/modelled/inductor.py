"""Compiles a module with ``torch.compile``: by Inductor, and the pinned clang or Triton."""

from __future__ import annotations

import os
import shlex
import shutil
import statistics
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, record_function

from modelled.user_model import described, results

_WRAPPER = Path(__file__).resolve().parents[1] / "inductor/clang.py"
_FUSED, _FUSED_THERE = "cpp_", "triton_"
_RUNS = 7
_COMPILERS = ("cc", "gcc", "clang")


class NotCompiledError(Exception):
    """A model without a compiled form to compare; the text says why."""


@dataclass(frozen=True)
class Kernel:
    """One of the kernels that a compiled module calls.

    Attributes:
        name: of a function of Inductor's, or of an operator of PyTorch's.
        fused: whether Inductor wrote it.
        calls, seconds: in one call of the module; seconds are the lower quartile of seven.
    """

    name: str
    fused: bool
    calls: int
    seconds: float


Call = Callable[..., Any]


def set_up(clang: str) -> None:
    """Have Inductor use the clang of the ziglang package in ``clang``, and one thread.

    Everything that it writes is below the temporary directory. Raises NotCompiledError.
    """
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.is_file():
        what = "this Python has no headers; install those of its version, such as python3-dev"
        raise NotCompiledError(what)
    work = _work()
    program = work / "clang++"  # Inductor knows compilers by their names
    words = shlex.join([sys.executable, str(_WRAPPER), clang])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)

    from torch._inductor import config

    config.cpp.cxx = (None, str(program))
    config.cpp.threads = 1
    config.cpp.vec_isa_ok = True  # what the processor says is enough: PyTorch is pinned


def set_up_device() -> None:
    """Have Inductor write Triton kernels for the device, in one thread.

    What launches a kernel is linked with a C compiler of the machine. Raises NotCompiledError.
    """
    if not any(map(shutil.which, _COMPILERS)):
        what = "the machine has no C compiler, with which Triton links what launches a kernel"
        raise NotCompiledError(what)
    _work()


def _work() -> Path:
    """Where everything is written that a compiler makes: below the temporary directory."""
    work = Path(tempfile.mkdtemp(prefix="inductor"))
    os.environ |= {
        "TORCHINDUCTOR_CACHE_DIR": str(work / "cache"),
        "TRITON_CACHE_DIR": str(work / "triton"),
        "USER": "kabuild",
    }

    from torch._inductor import config

    config.compile_threads = 1
    config.fx_graph_remote_cache = False
    return work


def compiled(module: nn.Module, arguments: Sequence[Tensor]) -> Call:
    """The module, compiled for these arguments. Raises NotCompiledError."""
    torch._dynamo.reset()  # noqa: SLF001 - there is no other way
    call: Call = torch.compile(module, dynamic=False)
    try:
        given = results(call(*arguments))
        expected = results(module(*arguments))
    except Exception as error:
        raise NotCompiledError(f"it ended with {described(error)}") from error
    if not _made():
        raise NotCompiledError("it made no kernel and no call of PyTorch's")
    for one, true in zip(given, expected, strict=True):
        _compare(one, true)
    return call


def _compare(one: Tensor, true: Tensor) -> None:
    if one.shape != true.shape or one.dtype != true.dtype:
        raise NotCompiledError("its results have other shapes or element types")
    if not true.is_floating_point():
        return
    allowed = torch.finfo(true.dtype).eps ** 0.5 * float(true.double().abs().max())
    apart = float((one.double() - true.double()).abs().max())
    if not apart <= allowed:
        what = f"its results are {apart:.2g} apart from eager's, where {allowed:.2g} is allowed"
        raise NotCompiledError(what)


def kernels(call: Callable[[], Any]) -> list[Kernel]:
    """The kernels of a call of a compiled module, by PyTorch's profiler, the slowest first."""
    for made in _made():
        for name, function in list(vars(made).items()):
            if name.startswith(_FUSED) and callable(function):
                setattr(made, name, _recorded(name, function))
    call()
    runs = [_run(call) for _ in range(_RUNS)]
    return _rows(runs, _FUSED)


def device_kernels(call: Callable[[], Any]) -> list[Kernel]:
    """The kernels that a call starts on a device, as ``kernels`` has them.

    Empty where PyTorch's profiler may not, or cannot, record what a device does.
    """
    call()
    device = torch.accelerator.current_accelerator()
    kind = getattr(ProfilerActivity, device.type.upper(), None) if device else None
    return _rows([_run_there(call, kind) for _ in range(_RUNS)], _FUSED_THERE) if kind else []


def _run_there(call: Callable[[], Any], kind: ProfilerActivity) -> dict[str, list[float]]:
    """Seconds of each start of a kernel, by its name."""
    found: dict[str, list[float]] = {}
    with profile(activities=[ProfilerActivity.CPU, kind]) as profiler:
        call()
        torch.accelerator.synchronize()
    for event in profiler.events():
        there = event.device_type.name != "CPU" and event.device_time_total > 0
        if there and not getattr(event, "is_user_annotation", False):
            found.setdefault(event.name, []).append(event.device_time_total / 1e6)
    return found


def _rows(runs: Sequence[Mapping[str, Sequence[float]]], fused: str) -> list[Kernel]:
    """A row for each kernel; of those called ``fused…`` Inductor is the author."""
    rows = []
    for name, times in runs[0].items():
        taken = statistics.quantiles([sum(run.get(name, [0.0])) for run in runs], n=4)[0]
        rows.append(Kernel(name, name.startswith(fused), len(times), taken))
    return sorted(rows, key=lambda row: (-row.seconds, row.name))


def _run(call: Callable[[], Any]) -> dict[str, list[float]]:
    """Seconds of each call of a kernel, by its name."""
    found: dict[str, list[float]] = {}
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        call()
    for event in profiler.events():
        if _is_kernel(event) and not _below_another(event):
            found.setdefault(event.name, []).append(event.cpu_time_total / 1e6)
    return found


def _made() -> list[Any]:
    """The modules of Python that Inductor has written."""
    from torch._inductor.codecache import PyCodeCache

    return [module for module in PyCodeCache.modules if hasattr(module, "call")]


def _recorded(name: str, function: Call) -> Call:
    def call(*arguments: Any) -> Any:
        with record_function(name):
            return function(*arguments)

    return call


def _is_kernel(event: Any) -> bool:
    return event.name.startswith(_FUSED) or "::" in event.name


def _below_another(event: Any) -> bool:
    parent = event.cpu_parent
    while parent is not None:
        if _is_kernel(parent):
            return True
        parent = parent.cpu_parent
    return False


def told(rows: Sequence[Kernel]) -> list[Mapping[str, Any]]:
    """Kernels as facts, with their shares."""
    total = sum(row.seconds for row in rows) or 1.0
    return [
        {
            "name": row.name,
            "fused": row.fused,
            "calls": row.calls,
            "seconds": row.seconds,
            "share": row.seconds / total,
        }
        for row in rows
    ]
