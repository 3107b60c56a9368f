"""The calls of a batch for a task with a call: operands over the shared buffers, and results."""

from __future__ import annotations

import contextlib
import gc
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from pyrunner import host
from pyrunner.calls import Ground, Shared, Work
from runners.call_block import CallBlock
from runners.control_block import Region
from terms.dtypes import BY_CODE
from torch import Tensor

from pyrunner_call.call_tree import Boundary, Functions
from pyrunner_call.returned import Returned


class Called:
    """The loaded config: its slots as operands, and the results of calls.

    Objects that the call constructs are constructed here, once, and get their state.
    """

    def __init__(self, functions: Functions, fds: list[int], ground: Ground) -> None:
        block_fd, input_fd, output_fd, result_fd, state_fd = fds
        self._ground = ground
        self._memory = host.mapped(block_fd, writable=False)
        self.block = block = CallBlock.decode(self._memory[:])
        inputs = ground.shared(input_fd, block.sizes[0])
        outputs = ground.shared(output_fd, block.sizes[1])
        slots = range(block.slots)
        self._outputs = [_tensors(block.outputs, outputs, s * block.strides[1]) for s in slots]
        kept = [_tensors(block.inputs, inputs, s * block.strides[0]) for s in slots]
        home = inputs(0, 1, torch.uint8).device
        constants = {**block.values, **dict.fromkeys(block.absent)}
        state = _state(block, ground.own(state_fd, block.sizes[2]))
        self._boundary = Boundary(functions, constants, block.dtype, state, home)
        both = ({**one, **other} for one, other in zip(kept, self._outputs, strict=True))
        self._operands = [self._boundary.operands(_unbound(block, tensors)) for tensors in both]
        arenas = [
            range(start, start + size)
            for start, size in zip(
                (inputs(0, 1, torch.uint8).data_ptr(), outputs(0, 1, torch.uint8).data_ptr()),
                block.sizes,
                strict=False,
            )
        ]
        table = host.mapped(result_fd, writable=True)
        self._returned = Returned(
            block, functions.targets, table, arenas, self._outputs, home=home.type
        )
        self._results: list[Any] = []
        self._restored = False

    def run(self, calls: int, left_out: int = -1) -> int:
        """Make the calls of a batch; returns the time in ns.

        The time includes recording where results lie, or copying them. That is the same for the
        candidate and for the baseline.
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
        """Restore objects, and free the results that the judge has read.

        What that takes would be in one program's batches, and not in another's empty ones.
        """
        self._results = []
        self._boundary.restore()
        self._restored = True

    @contextlib.contextmanager
    def _ready(self, calls: int, left_out: int = -1) -> Iterator[Work]:
        """Prepare the calls of a batch as one function; garbage collection is off meanwhile."""
        order = struct.unpack_from(f"<{calls}I", self._memory, self.block.order_offset)
        if not self._restored:
            self.collect()
        self._restored = False
        function, operands = self._boundary.function, self._operands
        take, keep = self._take, self._results.append

        def work() -> None:
            with torch.no_grad():
                for index, slot in enumerate(order):
                    arguments, keywords = operands[slot]
                    if index == left_out:
                        with self._ground.without_launches():
                            result = function(*arguments, **keywords)
                    else:
                        result = function(*arguments, **keywords)
                    keep(result)
                    take(slot, result)

        gc.disable()
        yield work
        gc.enable()

    def _take(self, slot: int, result: Any) -> None:
        if self.block.copied:
            self._returned.copy(slot, result)
            self._results.clear()
        else:
            self._returned.note(slot, result)


def _tensors(regions: tuple[Region, ...], memory: Shared, start: int) -> dict[str, Tensor]:
    return {region.name: _tensor(region, memory, start) for region in regions}


def _tensor(region: Region, memory: Shared, start: int) -> Tensor:
    dtype = BY_CODE[region.code]
    kind: torch.dtype = getattr(torch, dtype.given_as or dtype.torch_name)
    if not region.size:
        return torch.empty(region.shape, dtype=kind, device=memory(0, 1, torch.uint8).device)
    flat = memory(start + region.first, region.size, torch.uint8).view(kind)
    if region.strides:
        return flat.as_strided(region.shape, region.strides)
    return flat.view(region.shape)


def _unbound(block: CallBlock, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The tensors as a call gets them: those of a list are split along their first axis."""
    lists = {name: list(tensors[name].unbind(0)) for name in block.listed if name in tensors}
    return {**tensors, **lists}


def _state(block: CallBlock, memory: Shared) -> dict[str, Tensor]:
    """The state tensors, which calls may change."""
    found = {}
    for region in block.state:
        kind: torch.dtype = getattr(torch, BY_CODE[region.code].torch_name)
        flat = memory(region.first, region.size // kind.itemsize, kind)
        found[region.name] = flat.view(region.shape)
    return found
