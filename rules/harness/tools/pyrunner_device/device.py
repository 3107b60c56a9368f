"""Calls on a GPU: the judge's memory of the device, and the device's own clock."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch
from base.program import Program
from gpu.driver import accelerator, choose
from gpu.memory import DeviceMemory
from torch import Tensor

if TYPE_CHECKING:
    from pyrunner_device.gate import Gate

_NANOSECONDS = 1e6  # of torch's milliseconds


class Device:
    """The ``Ground`` of programs for the device of this process."""

    def __init__(self, program: Program) -> None:
        platform = choose(program.platform)
        self._gated = platform.gated
        self._torch = accelerator()
        # A device that does not work must not be the program's fault.
        torch.ones(1, device=platform.torch_device)
        self._torch.synchronize()
        self._recordable = program.abi != "torch"
        self._start, self._stop = _event(), _event()
        self._gate: Gate | None = None

    def shared(self, fd: int, size: int) -> Callable[[int, int, torch.dtype], Tensor]:
        """Views of the judge's memory behind a descriptor, which is closed."""
        flat = DeviceMemory.adopt(fd, size).flat()

        def view(first: int, count: int, kind: torch.dtype) -> Tensor:
            return flat[first : first + count * kind.itemsize].view(kind)

        return view

    def hold(self, fd: int) -> bool:
        """Prepare launches behind the gate of this page; returns whether that is possible."""
        if not self._gated:
            os.close(fd)
            return False
        self._gate = importlib.import_module("pyrunner_device.gate").Gate(fd)
        return True

    def queued(self, work: Callable[[], None], ticket: int) -> int:
        """Launch the work behind the shut gate; how many nanoseconds that took the host."""
        assert self._gate is not None
        self._gate.shut(ticket)
        self._start.record()
        started = perf_counter_ns()
        work()
        took = perf_counter_ns() - started
        self._stop.record()
        self._gate.end(ticket)
        return took

    def opened(self, ticket: int) -> int:
        """Wait until the device is idle, and say so; how long that was, by the device's clock."""
        assert self._gate is not None
        try:
            self._torch.synchronize()
        finally:
            self._gate.page.idle(ticket)
        return int(self._start.elapsed_time(self._stop) * _NANOSECONDS)

    def timed(self, work: Callable[[], None]) -> int:
        """Do the work, in whatever streams; how many nanoseconds it took."""
        self._start.record()
        work()
        self._torch.synchronize()
        self._stop.record()
        self._stop.synchronize()
        return int(self._start.elapsed_time(self._stop) * _NANOSECONDS)

    def replayed(self, work: Callable[[], None]) -> int | None:
        """The work recorded, then run as one graph; None if it cannot be recorded."""
        if not self._recordable:
            return None
        graph = self._torch.CUDAGraph()
        try:
            with self._torch.graph(graph):
                work()
        except RuntimeError:  # what is not allowed while recording, whatever it is
            return None
        graph.replay()  # launching is hidden behind it
        self._start.record()
        graph.replay()
        self._stop.record()
        self._torch.synchronize()
        return int(self._start.elapsed_time(self._stop) * _NANOSECONDS)

    def finish(self) -> None:
        """Wait until all work is done, in whatever streams."""
        self._torch.synchronize()

    def legal(self, _: dict[str, Tensor]) -> AbstractContextManager[None]:
        """Guards beside the outputs show writes that are not intercepted here."""
        return contextlib.nullcontext()

    def without_launches(self) -> AbstractContextManager[None]:
        """Nothing is left out here: a runner's driver launches a candidate's own kernels only."""
        return contextlib.nullcontext()

    def reserve(self, results: Callable[[], object]) -> None:
        """Have the allocator keep what ``results`` makes, so that the clock sees no cudaMalloc."""
        held = results()
        del held
        self._torch.synchronize()


def _event() -> Any:
    return accelerator().Event(enable_timing=True)
