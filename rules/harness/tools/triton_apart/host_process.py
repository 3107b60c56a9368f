"""The half of a Triton runner that has the candidate's module, but not the tensors' memory.

It is forked from the half that runs kernels. A module that manipulates this process harms only
itself: its kernels compute the results from the judge's inputs in the other one.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import faulthandler
import gc
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

import torch
from base.program import Program
from pyrunner.excerpt import excerpt
from pyrunner.faults import code_of
from pyrunner.module import Entry, load_entry
from runners import confinement, lockdown
from terms.dtypes import BY_CODE
from torch import Tensor
from triton_cpu import interpreter

from triton_apart.link import Gone, Link
from triton_apart.operators import Functions, Operators, Spec
from triton_apart.territory import Heap, flat

_PR_SET_PDEATHSIG = 1


class _Device:
    """The other process, as the device that runs kernels and has the memory."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._turn = threading.Lock()

    def ask(self, verb: str, *arguments: Any) -> Any:
        """Send a request and wait for its answer."""
        with self._turn:
            self._link.send([verb, *arguments])
            done, answer = self._link.receive()
        assert done == "done"
        return answer

    def define(
        self, number: int, where: tuple[str, int, str], names: Mapping[str, Any], *, constant: bool
    ) -> None:
        self.ask("define", number, list(where), names, constant)

    def launch(
        self, number: int, grid: tuple[int, ...], values: Mapping[str, Any], constants: list[str]
    ) -> None:
        self.ask("launch", number, list(grid), values, constants)

    def commit(self, end: int) -> None:
        """Request memory up to an address."""
        self.ask("commit", end)

    def fill(self, tensor: Spec, value: float) -> None:
        self.ask("fill", tensor, value)

    def copy(self, target: Spec, source: Spec) -> None:
        self.ask("copy", target, source)

    def read(self, tensor: Spec) -> float | None:
        answer: float | None = self.ask("read", tensor)
        return answer

    def write(self, address: int, data: bytes) -> None:
        self.ask("write", address, base64.b64encode(data).decode())


def run(program: Program, link: Link, heap: int, last_words: int) -> NoReturn:
    """Serve the other half until it has ended; called right after the fork.

    ``heap`` is the first address of the candidate's allocations. If a fault kills this process,
    its stack trace is written to the descriptor ``last_words``.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    lockdown.install(lockdown.assemble())
    faulthandler.enable(last_words, all_threads=False)
    device = _Device(link)
    interpreter.run_on(device)
    with Functions(), Operators(Heap(heap, device.commit), device):
        _Host(program, link).serve()


class _Host:
    """Answers requests of the other process."""

    def __init__(self, program: Program, link: Link) -> None:
        self._program = program
        self._link = link
        self._path = confinement.candidate_path(program)
        self._entry: Entry | None = None
        self._tensors: list[list[Tensor]] = []
        self._keywords: Mapping[str, Any] = {}

    def serve(self) -> NoReturn:
        """Answer until the other process has ended."""
        with contextlib.suppress(Gone):
            while True:
                request = self._link.receive()
                try:
                    self._obey(request)
                except Gone:
                    raise
                except BaseException as error:  # noqa: BLE001 - a candidate may raise anything
                    sys.stdout.flush()
                    os.write(2, excerpt(error, self._path).encode(errors="replace"))
                    self._link.send(["fault", *code_of(error)])
        os._exit(0)

    def _obey(self, request: list[Any]) -> None:
        match request:
            case ["start"]:
                self._entry = load_entry(self._program, self._path)
                gc.freeze()  # later collections then scan only what the calls have created
            case ["load", slots, keywords]:
                self._tensors = [[_tensor(*region) for region in slot] for slot in slots]
                self._keywords = keywords
            case ["call", slot]:
                self._call(slot)
        self._link.send(["ready"])

    def _call(self, slot: int) -> None:
        assert self._entry is not None
        gc.disable()
        with torch.no_grad():
            self._entry(*self._tensors[slot], **self._keywords)
        gc.enable()


def _tensor(address: int, size: int, code: int, shape: list[int]) -> Tensor:
    dtype: torch.dtype = getattr(torch, BY_CODE[code].torch_name)
    if not size:
        return torch.empty(shape, dtype=dtype)
    return flat(address, size).view(dtype).view(shape)
