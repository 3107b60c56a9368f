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
    """The ground that calls run on: ``pyrunner.host`` or ``pyrunner_device.device``."""

    def shared(self, fd: int, size: int) -> Shared:
        """Views of the judge's memory behind a descriptor, which is closed."""

    def hold(self, fd: int) -> bool:
        """Prepare launches behind the gate of this page; returns whether that is possible."""

    def queued(self, work: Work, ticket: int) -> int:
        """Launch the work behind the shut gate; how many nanoseconds that took the host."""

    def opened(self, ticket: int) -> int:
        """Wait until it is done, and say so; how long that was, by the device's clock."""

    def timed(self, work: Work) -> int:
        """Do the work, to its end; how many nanoseconds it took."""

    def replayed(self, work: Work) -> int | None:
        """The same with its launches recorded and run as one graph; None if they cannot be."""

    def finish(self) -> None:
        """Wait until all work in all streams is done."""

    def legal(self, tensors: dict[str, Tensor]) -> AbstractContextManager[None]:
        """Within it kernels may access these tensors, and what they have allocated."""

    def without_launches(self) -> AbstractContextManager[None]:
        """Within it launches have no effect."""

    def reserve(self, results: Callable[[], object]) -> None:
        """Have memory at hand for what ``results`` allocates."""


class WrongShape(Exception):  # noqa: N818 (the candidate's, no error of ours)
    """A returned tensor is missing or of another shape."""


class WrongDtype(Exception):  # noqa: N818
    """A returned tensor is of another dtype."""


class Calls:
    """The loaded config: its slots as tensors, and how the entry is called with them."""

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
        """Make the calls of a batch; returns nanoseconds.

        Launches of the call ``left_out`` have no effect, where the ground knows of launches.

        A PyTorch program allocates what it returns, and that is part of its time. Copying
        it into the judge's buffers is not: ``collect`` does it when both clocks have stopped.
        """
        with self._ready(calls, left_out) as work:
            return self._ground.timed(work)

    def queue(self, calls: int, ticket: int) -> int:
        """Launch the calls of a batch behind the gate; returns the nanoseconds of the host."""
        with self._ready(calls) as work:
            return self._ground.queued(work, ticket)

    def replay(self, calls: int) -> int | None:
        """``run`` with the launches recorded and run as one graph; None if they cannot be."""
        with self._ready(calls) as work:
            return self._ground.replayed(work)

    def collect(self) -> None:
        """Copy what the calls of the last batch returned into the outputs of their slots.

        Raises WrongShape and WrongDtype.
        """
        results, self._results = self._results, []
        for slot, result in results:
            self._deliver(slot, result)
        self._ground.finish()

    @contextlib.contextmanager
    def _ready(self, calls: int, left_out: int = -1) -> Iterator[Work]:
        """The calls of a batch as one piece of work."""
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
            raise WrongShape(f"a {type(result).__name__} instead of a mapping of outputs")
        for name, output in self._outputs[slot].items():
            tensor = result.get(name)
            if not isinstance(tensor, Tensor) or tensor.shape != output.shape:
                shape = list(tensor.shape) if isinstance(tensor, Tensor) else "missing"
                raise WrongShape(f"'{name}' is {shape} instead of {list(output.shape)}")
            if tensor.dtype != output.dtype:
                raise WrongDtype(f"'{name}' is {tensor.dtype} instead of {output.dtype}")
            output.copy_(tensor)


def _tensors(regions: tuple[Region, ...], memory: Shared, start: int) -> dict[str, Tensor]:
    return {region.name: _tensor(region, memory, start) for region in regions}


def _tensor(region: Region, memory: Shared, start: int) -> Tensor:
    dtype = BY_CODE[region.code]
    kind: torch.dtype = getattr(torch, dtype.torch_name)
    flat = memory(start + region.first, region.size // dtype.size, kind)
    return flat.view(region.shape)
