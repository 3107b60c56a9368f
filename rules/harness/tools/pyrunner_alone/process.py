"""Calls a Triton candidate once on its device, in its own process, for a tool that watches it.

Prints what ``runner_alone/main.cpp`` prints, but for the places of tensors. The tool is told to
begin right before the call. The candidate shares this process and may forge all of it.
"""

from __future__ import annotations

import importlib
import json
import os
from typing import NoReturn

from base.device_platform import device_platform
from base.places import BINARIES
from base.program import Program
from gpu.driver import accelerator
from pyrunner.excerpt import excerpt
from pyrunner.faults import code_of
from pyrunner.inside import Inside
from runners import confinement
from runners.protocol import FaultCode

from pyrunner_alone.files import Files

_KINDS = {
    FaultCode.MISSING_ENTRY: "missing_entry",
    FaultCode.MEMORY: "memory",
    FaultCode.LAUNCH: "launch",
}


def main(block: str, inputs: str, described: str) -> NoReturn:
    """Load the candidate, and call it.

    ``block`` is a file with a control block of one slot, ``inputs`` one with its inputs, and
    ``described`` is the program, as JSON.
    """
    program = Program(**json.loads(described))
    if program.binaries:
        importlib.import_module("pyrunner_device.binaries").lay_out(BINARIES)
    subject = Inside(program, Files(program))
    profiler = accelerator().profiler
    _say("ready")
    try:
        subject.start()
        subject.load([os.open(path, os.O_RDONLY) for path in (block, inputs, os.devnull)])
        accelerator().synchronize()
        profiler.start()
        subject.run(1)
        profiler.stop()
    except BaseException as error:  # noqa: BLE001 - a candidate may raise anything
        _fail(program, error)
    _say("done")
    os._exit(0)  # without exit handlers: the candidate may have installed some


def _fail(program: Program, error: BaseException) -> NoReturn:
    print(excerpt(error, confinement.candidate_path(program)), flush=True)
    complaints = device_platform(program.platform).out_of_memory
    code, *values = code_of(error, complaints)
    kind = _KINDS.get(FaultCode(code), "exception")
    _say(f"fault {kind} {values[0] if values else 0}")
    os._exit(1)


def _say(what: str) -> None:
    print(f"kabuild-alone {what}", flush=True)
