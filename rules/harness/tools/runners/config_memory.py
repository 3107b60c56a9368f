"""The shared memory of one config: control block, inputs, outputs, workspace."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar

import torch
from base import shapes
from base.dtypes import DTYPES
from base.program import Argument, Config, Program, Reason, Signature
from gpu import session

from runners import diagnosis, media
from runners.buffers import GuardDamage, InputArena, OutputArena
from runners.control_block import ControlBlock, Region

if TYPE_CHECKING:
    from torch import Tensor


class ConfigMemory:
    """Owns what a runner maps for a config of ``slots`` slots.

    What a copy takes at least is known from all processes of both sides: none that is busy when
    it should not be can make itself the measure.
    """

    _fastest: ClassVar[dict[tuple[str, int, int, int], int]] = {}

    def __init__(self, program: Program, signature: Signature, config: Config, slots: int) -> None:
        self.slots = slots
        self._medium = media.of(program)
        self._on_device = program.on_device
        # Python's tensors and a device's memory cannot be read-only: there the judge compares
        # the inputs instead.
        self._sealed = program.abi == "hip" and not program.on_device
        inputs = [region(argument, config) for argument in signature.inputs]
        outputs = [region(argument, config) for argument in signature.outputs]
        self._inputs = InputArena(inputs, slots, self._medium, sealed=self._sealed)
        self._outputs = OutputArena(outputs, slots, self._medium)
        self._scratch: OutputArena | None = None
        self.block = ControlBlock(
            symbols=(f"{program.entry}_{config.dtype}", program.entry),
            inputs=self._inputs.regions,
            outputs=self._outputs.regions,
            scalars=tuple(scalar(pair, config) for pair in signature.scalars),
            dims=tuple((name, config.dims[name]) for name in signature.dims),
            strides=(self._inputs.stride, self._outputs.stride),
            sizes=(self._inputs.size, self._outputs.size),
            page=self._medium.page,
            slots=slots,
        )
        self._block_fd, self._block_memory = media.shared_file(self.block.size, sealed=True)
        self._block_memory[: self.block.order_offset] = self.block.encode()
        self._outputs.poison()

    @property
    def fds(self) -> tuple[int, int, int]:
        """What LOAD passes: control block, inputs, outputs."""
        return self._block_fd, self._inputs.fd, self._outputs.fd

    def add_scratch(self, size: int) -> OutputArena:
        """A workspace of ``size`` bytes, guarded like an output."""
        dtype = DTYPES["u8"]
        region = Region("workspace", 0, size, dtype.code, (size,))
        self._scratch = OutputArena([region], 1, self._medium)
        self._scratch.poison()
        return self._scratch

    def prepare(
        self, order: Sequence[int], inputs: Sequence[Mapping[str, Tensor]], repeats: int = 1
    ) -> None:
        """Fill the slots of a batch with fresh inputs, poison everything that is written.

        With ``repeats`` all of them are called on that often. A device's inputs are checked
        only: ``fill`` brings them.
        """
        if not self._on_device:
            self._write(order, inputs)
        self._outputs.poison()
        if self._scratch:
            self._scratch.poison()
        called = [*order] * repeats
        start = self.block.order_offset
        end = start + 4 * len(called)
        self._block_memory[start:end] = struct.pack(f"<{len(called)}I", *called)
        if self._on_device:
            self._outputs.make_room()
            torch.cuda.synchronize()

    def fill(self, order: Sequence[int], inputs: Sequence[Mapping[str, Tensor]]) -> int:
        """Bring the inputs to a device; by how many ns that took longer than it can.

        The runner is at large and waits for a word. Were it to begin with what has come, it
        would hold up the rest.
        """
        started = time.monotonic_ns()
        self._write(order, inputs)
        session.evict()
        return self._held_up("fill", len(order), time.monotonic_ns() - started)

    def take(self) -> int:
        """Copy a device's outputs as they are now; by how many ns that took longer than it can.

        What a process has launched goes on when it is frozen. What was launched too late is not
        in the copy, or holds it up.
        """
        if not self._on_device:
            return 0
        started = time.monotonic_ns()
        self._outputs.take()
        return self._held_up("take", 0, time.monotonic_ns() - started)

    def _write(self, order: Sequence[int], inputs: Sequence[Mapping[str, Tensor]]) -> None:
        for slot, tensors in zip(order, inputs, strict=True):
            self._inputs.write(slot, tensors)

    def _held_up(self, what: str, calls: int, took_ns: int) -> int:
        key = (what, calls, self._inputs.size, self._outputs.size)
        fastest = min(took_ns, self._fastest.get(key, took_ns))
        self._fastest[key] = fastest
        return took_ns - fastest

    def check(self, order: Sequence[int], inputs: Sequence[Mapping[str, Tensor]]) -> None:
        """Raise CandidateFault for a damaged guard or a changed input."""
        try:
            self._outputs.check_guards()
            if self._scratch:
                self._scratch.check_guards()
        except GuardDamage as damage:
            raise diagnosis.fault(Reason.OUT_OF_BOUNDS, f"wrote out of bounds: {damage}") from None
        if self._on_device and self._outputs.changed():
            raise diagnosis.violation("went on writing outputs after it had answered")
        if not self._sealed:
            for slot, tensors in zip(order, inputs, strict=True):
                name = self._inputs.mutated(slot, tensors)
                if name is not None:
                    raise diagnosis.fault(Reason.INPUT_MUTATED, f"changed its input '{name}'")

    def read(self, order: Sequence[int]) -> tuple[dict[str, Tensor], ...]:
        """Copies of the outputs of each call."""
        return tuple(self._outputs.read(slot) for slot in order)

    def close(self) -> None:
        """Give up the descriptors; may be called twice."""
        for arena in (self._inputs, self._outputs, self._scratch):
            if arena:
                arena.close()
        if self._block_fd >= 0:
            os.close(self._block_fd)
            self._block_fd = -1


def region(argument: Argument, config: Config) -> Region:
    """A tensor of the signature, at the start of an arena."""
    dtype = DTYPES[shapes.dtype_name(argument, config)]
    shape = shapes.shape(argument, config.dims)
    return Region(argument.name, 0, prod(shape) * dtype.size, dtype.code, shape)


def scalar(declared: tuple[str, float | int], config: Config) -> tuple[str, float | int]:
    """The config's value, in the type of the declaration: that is the C type."""
    name, default = declared
    value = config.scalars.get(name, default)
    return name, float(value) if isinstance(default, float) else int(value)
