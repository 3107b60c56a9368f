"""The calls of a batch: tensors over the shared buffers, and the clock around them."""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import struct
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from time import perf_counter_ns
from typing import Any

import torch
from base.dtypes import BY_CODE
from runners.control_block import ControlBlock, Region
from torch import Tensor

from pyrunner.module import Entry

_MADV_POPULATE_WRITE = 23


class WrongShape(Exception):  # noqa: N818 (the candidate's, no error of ours)
    """A returned tensor is missing or of another shape."""


class WrongDtype(Exception):  # noqa: N818
    """A returned tensor is of another dtype."""


class Calls:
    """The loaded config: its slots as tensors, and how the entry is called with them."""

    def __init__(self, abi: str, entry: Entry, fds: list[int]) -> None:
        self._abi = abi
        self._entry = entry
        self._block_memory = _mapped(fds[0], writable=False)
        self.block = ControlBlock.decode(self._block_memory[:])
        input_memory = _mapped(fds[1], writable=True)
        output_memory = _mapped(fds[2], writable=True)
        strides = self.block.strides
        slots = range(self.block.slots)
        self._inputs = [
            _tensors(self.block.inputs, input_memory, slot * strides[0]) for slot in slots
        ]
        self._outputs = [
            _tensors(self.block.outputs, output_memory, slot * strides[1]) for slot in slots
        ]
        self._keywords = dict((*self.block.scalars, *self.block.dims))
        self._results: list[tuple[int, Any]] = []

    def run(self, calls: int) -> int:
        """Make the calls of a batch; how long they took, in nanoseconds.

        A PyTorch program allocates what it returns, and that is part of its time. Copying
        it into the judge's buffers is not: ``collect`` does it when both clocks have stopped.
        """
        start = self.block.order_offset
        order = struct.unpack_from(f"<{calls}I", self._block_memory, start)
        self._results = []
        call = self._returning if self._abi == "torch" else self._writing
        gc.disable()
        started = perf_counter_ns()
        with torch.no_grad():
            for slot in order:
                call(slot)
        elapsed = perf_counter_ns() - started
        gc.enable()
        return elapsed

    def collect(self) -> None:
        """Copy what the calls of the last batch returned into the outputs of their slots.

        Raises WrongShape and WrongDtype.
        """
        results, self._results = self._results, []
        for slot, result in results:
            self._deliver(slot, result)

    def _writing(self, slot: int) -> None:
        inputs, outputs = self._inputs[slot], self._outputs[slot]
        with _legal(inputs | outputs):
            self._entry(*inputs.values(), *outputs.values(), **self._keywords)

    def _returning(self, slot: int) -> None:
        self._results.append((slot, self._entry(**self._inputs[slot], **self._keywords)))

    def _deliver(self, slot: int, result: Any) -> None:
        if not isinstance(result, Mapping):
            raise WrongShape(f"a {type(result).__name__} instead of a mapping of outputs")
        for name, output in self._outputs[slot].items():
            tensor = result.get(name)
            if not isinstance(tensor, Tensor) or tensor.shape != output.shape:
                shape = list(tensor.shape) if isinstance(tensor, Tensor) else "missing"
                raise WrongShape(f"'{name}' is {shape} instead of {list(output.shape)}")
            if tensor.dtype != output.dtype:
                raise WrongDtype(f"'{name}' is {tensor.dtype} instead of {output.dtype}")
            output.copy_(tensor)


def _legal(tensors: dict[str, Tensor]) -> AbstractContextManager[None]:
    """Names the tensors to Triton's interpreter, where it is in use."""
    triton_cpu = sys.modules.get("triton_cpu.interpreter")
    if triton_cpu is None:
        return contextlib.nullcontext()
    context: AbstractContextManager[None] = triton_cpu.tensors(**tensors)
    return context


def _mapped(fd: int, *, writable: bool) -> mmap.mmap:
    protection = mmap.PROT_READ | mmap.PROT_WRITE if writable else mmap.PROT_READ
    memory = mmap.mmap(fd, os.fstat(fd).st_size, mmap.MAP_SHARED, protection)
    os.close(fd)
    if writable:
        with contextlib.suppress(OSError):  # before Linux 5.14 the first call pays instead
            memory.madvise(_MADV_POPULATE_WRITE)
    return memory


def _tensors(regions: tuple[Region, ...], memory: mmap.mmap, start: int) -> dict[str, Tensor]:
    return {region.name: _tensor(region, memory, start) for region in regions}


def _tensor(region: Region, memory: mmap.mmap, start: int) -> Tensor:
    dtype = BY_CODE[region.code]
    kind: torch.dtype = getattr(torch, dtype.torch_name)
    if not region.size:
        return torch.empty(region.shape, dtype=kind)
    count = region.size // dtype.size
    flat = torch.frombuffer(memory, dtype=kind, count=count, offset=start + region.first)
    return flat.view(region.shape)
