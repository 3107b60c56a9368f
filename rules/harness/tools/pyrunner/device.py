"""Calls on a GPU: the judge's memory of the device, and the device's own clock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from base.program import Program
from gpu.memory import DeviceMemory
from torch import Tensor

_NANOSECONDS = 1e6  # of torch's milliseconds


class Device:
    """The ``Ground`` of programs for the device of this process."""

    def __init__(self, program: Program) -> None:
        torch.ones(1, device="cuda")  # so that a device that does not work is no program's fault
        torch.cuda.synchronize()
        self._recordable = program.abi != "torch"
        self._start, self._stop = _event(), _event()

    def shared(self, fd: int, size: int) -> Callable[[int, int, torch.dtype], Tensor]:
        """Views of the judge's memory behind a descriptor, which is closed."""
        flat = DeviceMemory.adopt(fd, size).flat()

        def view(first: int, count: int, kind: torch.dtype) -> Tensor:
            return flat[first : first + count * kind.itemsize].view(kind)

        return view

    def timed(self, work: Callable[[], None]) -> int:
        """Do the work, in whatever streams; how many nanoseconds it took."""
        self._start.record()
        work()
        torch.cuda.synchronize()
        self._stop.record()
        self._stop.synchronize()
        return int(self._start.elapsed_time(self._stop) * _NANOSECONDS)

    def replayed(self, work: Callable[[], None]) -> int | None:
        """The work recorded, then run as one graph; None where it cannot be recorded."""
        if not self._recordable:
            return None
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                work()
        except RuntimeError:  # what is not allowed while recording, whatever it is
            return None
        return self.timed(graph.replay)

    def finish(self) -> None:
        """Wait until all work is done, in whatever streams."""
        torch.cuda.synchronize()

    def legal(self, _: dict[str, Tensor]) -> AbstractContextManager[None]:
        """Guards beside the outputs show what nobody intercepts here."""
        return contextlib.nullcontext()

    def reserve(self, results: Callable[[], object]) -> None:
        """Have the allocator keep what ``results`` makes, so that the clock sees no cudaMalloc."""
        held = results()
        del held
        torch.cuda.synchronize()


def _event() -> Any:
    make: Callable[..., Any] = torch.cuda.Event
    return make(enable_timing=True)
