"""Runs calls on a GPU, with the judge's device memory and the device's own clock."""

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

_NANOSECONDS = 1e6  # torch gives milliseconds


class Device:
    """The ``Ground`` of programs for this process's device."""

    def __init__(self, program: Program) -> None:
        platform = choose(program.platform)
        self._gated = platform.gated
        self._torch = accelerator()
        # A broken device must fail here, where it is not the program's fault.
        torch.ones(1, device=platform.torch_device)
        self._torch.synchronize()
        self._recordable = program.abi != "torch"
        self._start, self._stop = _event(), _event()
        self._gate: Gate | None = None

    def shared(self, fd: int, size: int) -> Callable[[int, int, torch.dtype], Tensor]:
        """Return a function for views of the judge's memory behind ``fd``; closes ``fd``."""
        flat = DeviceMemory.adopt(fd, size).flat()

        def view(first: int, count: int, kind: torch.dtype) -> Tensor:
            return flat[first : first + count * kind.itemsize].view(kind)

        return view

    def own(self, fd: int, size: int) -> Callable[[int, int, torch.dtype], Tensor]:
        """Return a function for views of what lies behind ``fd``; closes ``fd``.

        The judge has filled that memory for this process alone.
        """
        return self.shared(fd, size)

    def hold(self, fd: int) -> bool:
        """Prepare the gate in the page behind ``fd``; returns whether launches can wait for it."""
        if not self._gated:
            os.close(fd)
            return False
        self._gate = importlib.import_module("pyrunner_device.gate").Gate(fd)
        return True

    def queued(self, work: Callable[[], None], ticket: int) -> int:
        """Launch the work behind the shut gate; returns the host time in ns."""
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
        """Wait until the device is idle, and report it; returns the device time in ns."""
        assert self._gate is not None
        try:
            self._torch.synchronize()
        finally:
            self._gate.page.idle(ticket)
        return int(self._start.elapsed_time(self._stop) * _NANOSECONDS)

    def timed(self, work: Callable[[], None]) -> int:
        """Do the work, in any streams; returns the time in ns."""
        self._start.record()
        work()
        self._torch.synchronize()
        self._stop.record()
        self._stop.synchronize()
        return int(self._start.elapsed_time(self._stop) * _NANOSECONDS)

    def replayed(self, work: Callable[[], None]) -> int | None:
        """Record the work and run it as one graph; returns the time in ns.

        None if it cannot be recorded.
        """
        if not self._recordable:
            return None
        graph = self._torch.CUDAGraph()
        try:
            with self._torch.graph(graph):
                work()
        except RuntimeError:  # anything that is not allowed while recording
            return None
        graph.replay()  # the next launch is hidden behind it
        self._start.record()
        graph.replay()
        self._stop.record()
        self._torch.synchronize()
        return int(self._start.elapsed_time(self._stop) * _NANOSECONDS)

    def finish(self) -> None:
        """Wait until all work in all streams is done."""
        self._torch.synchronize()

    def legal(self, _: dict[str, Tensor]) -> AbstractContextManager[None]:
        """Check nothing: guards beside the outputs show stray writes."""
        return contextlib.nullcontext()

    def without_launches(self) -> AbstractContextManager[None]:
        """Suppress nothing: on a device the launch filter does that, when the judge orders it."""
        return contextlib.nullcontext()

    def reserve(self, results: Callable[[], object]) -> None:
        """Make the allocator reserve memory for ``results``, so that no cudaMalloc is timed."""
        held = results()
        del held
        self._torch.synchronize()


def _event() -> Any:
    return accelerator().Event(enable_timing=True)
