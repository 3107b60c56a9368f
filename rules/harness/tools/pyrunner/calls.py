"""The calls of a batch: tensors over the shared buffers, and the clock around them."""

from __future__ import annotations

import contextlib
import gc
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from runners.control_block import ControlBlock, Region
from terms.dtypes import BY_CODE
from torch import Tensor

from pyrunner import host
from pyrunner.module import Entry

Work = Callable[[], None]
Shared = Callable[[int, int, torch.dtype], Tensor]  # first byte, elements, their dtype


class Ground(Protocol):
    """What calls run on: ``pyrunner.host.Host`` or ``pyrunner_device.device.Device``."""

    def shared(self, fd: int, size: int) -> Shared:
        """Return a function for views of the judge's memory behind ``fd``; closes ``fd``."""

    def own(self, fd: int, size: int) -> Shared:
        """Return a function for tensors with what lies behind ``fd``; closes ``fd``.

        They are this process's own: whatever calls do to them, the judge does not read it.
        """

    def hold(self, fd: int) -> bool:
        """Prepare the gate in the page behind ``fd``; returns whether launches can wait for it."""

    def queued(self, work: Work, ticket: int) -> int:
        """Launch the work behind the shut gate; returns the host time in ns."""

    def opened(self, ticket: int) -> int:
        """Wait until the queued work is done, and report it; returns the device time in ns."""

    def timed(self, work: Work) -> int:
        """Do the work and wait for its end; returns the time in ns."""

    def replayed(self, work: Work) -> int | None:
        """Record the work's launches and run them as one graph; returns the time in ns.

        None if they cannot be recorded.
        """

    def finish(self) -> None:
        """Wait until all work in all streams is done."""

    def legal(self, tensors: dict[str, Tensor]) -> AbstractContextManager[None]:
        """A context in which kernels may access these tensors, besides their own allocations."""

    def without_launches(self) -> AbstractContextManager[None]:
        """A context in which launches have no effect, if the ground can suppress them."""

    def reserve(self, results: Callable[[], object]) -> None:
        """Reserve memory for what ``results`` allocates, before any call is timed."""


class WrongShape(Exception):  # noqa: N818 (the candidate's, no error of ours)
    """A returned tensor is missing or has the wrong shape."""


class WrongDtype(Exception):  # noqa: N818
    """A returned tensor has the wrong dtype."""


class Calls:
    """The loaded config: its slots as tensors, and the calls of the entry with them."""

    def __init__(self, abi: str, entry: Entry, fds: list[int], ground: Ground) -> None:
        self._abi = abi
        self._entry = entry
        self._ground = ground
        self._block_memory = host.mapped(fds[0], writable=False)
        self.block = ControlBlock.decode(self._block_memory[:])
        input_memory = ground.shared(fds[1], self.block.sizes[0])
        output_memory = ground.shared(fds[2], self.block.sizes[1])
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
        if abi == "torch":
            ground.reserve(lambda: [self._like_results(slot) for slot in slots])

    def run(self, calls: int, left_out: int = -1) -> int:
        """Make the calls of a batch; returns the time in ns.

        Launches of the call ``left_out`` have no effect, if the ground can suppress them.

        A PyTorch program allocates its results, and the time includes that. It does not include
        copying them into the judge's buffers: ``collect`` does that after both clocks have stopped.
        """
        with self._ready(calls, left_out) as work:
            return self._ground.timed(work)

    def queue(self, calls: int, ticket: int) -> int:
        """Launch the calls of a batch behind the gate; returns the host time in ns."""
        with self._ready(calls) as work:
            return self._ground.queued(work, ticket)

    def replay(self, calls: int) -> int | None:
        """Like ``run``, but as one recorded graph; None if the launches cannot be recorded."""
        with self._ready(calls) as work:
            return self._ground.replayed(work)

    def collect(self) -> None:
        """Copy the results of the last batch's calls into the outputs of their slots.

        Raises WrongShape and WrongDtype.
        """
        results, self._results = self._results, []
        for slot, result in results:
            self._deliver(slot, result)
        self._ground.finish()

    @contextlib.contextmanager
    def _ready(self, calls: int, left_out: int = -1) -> Iterator[Work]:
        """Prepare the calls of a batch as one function; garbage collection is off meanwhile."""
        start = self.block.order_offset
        order = struct.unpack_from(f"<{calls}I", self._block_memory, start)
        self._results = []
        call = self._returning if self._abi == "torch" else self._writing

        def work() -> None:
            with torch.no_grad():
                for index, slot in enumerate(order):
                    if index == left_out:
                        with self._ground.without_launches():
                            call(slot)
                    else:
                        call(slot)

        gc.disable()
        yield work
        gc.enable()

    def _like_results(self, slot: int) -> list[Tensor]:
        return [torch.empty_like(output) for output in self._outputs[slot].values()]

    def _writing(self, slot: int) -> None:
        inputs, outputs = self._inputs[slot], self._outputs[slot]
        with self._ground.legal(inputs | outputs):
            self._entry(*inputs.values(), *outputs.values(), **self._keywords)

    def _returning(self, slot: int) -> None:
        self._results.append((slot, self._entry(**self._inputs[slot], **self._keywords)))

    def _deliver(self, slot: int, result: Any) -> None:
        if not isinstance(result, Mapping):
            raise WrongShape(f"a {type(result).__name__}, expected a mapping of outputs")
        for name, output in self._outputs[slot].items():
            tensor = result.get(name)
            if not isinstance(tensor, Tensor) or tensor.shape != output.shape:
                shape = list(tensor.shape) if isinstance(tensor, Tensor) else "missing"
                raise WrongShape(f"'{name}' has shape {shape}, expected {list(output.shape)}")
            if tensor.dtype != output.dtype:
                raise WrongDtype(f"'{name}' is {tensor.dtype}, expected {output.dtype}")
            output.copy_(tensor)


def _tensors(regions: tuple[Region, ...], memory: Shared, start: int) -> dict[str, Tensor]:
    return {region.name: _tensor(region, memory, start) for region in regions}


def _tensor(region: Region, memory: Shared, start: int) -> Tensor:
    dtype = BY_CODE[region.code]
    kind: torch.dtype = getattr(torch, dtype.torch_name)
    flat = memory(start + region.first, region.size // dtype.size, kind)
    return flat.view(region.shape)
