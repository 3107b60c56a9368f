"""The shared memory of one config: control block, inputs, outputs, workspace."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from base import layouts, shapes
from base.outputs import Outputs
from base.program import Argument, Config, Program, Scalar, Signature
from gpu import session
from gpu.driver import accelerator
from gpu.look import Look
from terms.dtypes import DTYPES
from terms.reasons import Reason

from runners import diagnosis, shared_memory
from runners.buffers import GuardDamage, InputArena, OutputArena
from runners.call_block import CallBlock
from runners.control_block import ControlBlock, Region
from runners.results import Reader, ResultTable
from runners.state import StateArena

if TYPE_CHECKING:
    from torch import Tensor


_PLACES = 4  # of each slot's outputs, checked as soon as a runner is done
_LOOKS = 2


class ConfigMemory:
    """Owns the memory that a runner maps for a config of ``slots`` slots.

    The minimum copy time is taken over all processes of both sides, so a process that is busy when
    it should be idle cannot raise it.
    """

    _fastest: ClassVar[dict[tuple[str, int, int, int], int]] = {}

    def __init__(
        self,
        program: Program,
        signature: Signature,
        config: Config,
        slots: int,
        state: Mapping[str, Tensor] = MappingProxyType({}),
        *,
        copied: bool = False,
    ) -> None:
        self.slots = slots
        self._medium = shared_memory.of(program)
        self._on_device = program.on_device
        # Python tensors and device memory cannot be made read-only: there the judge compares the
        # inputs instead.
        self._sealed = program.abi == "hip" and not program.on_device
        self._results: ResultTable | None = None
        signature = signature.of(config)
        inputs = [region(argument, config) for argument in signature.kept]
        outputs = [region(argument, config) for argument in signature.results]
        self._scratch: OutputArena | None = None
        self._looks: list[Look] = []
        with ExitStack() as owned:  # a descriptor that is left open keeps a device's memory
            self._inputs = InputArena(inputs, slots, self._medium, sealed=self._sealed)
            owned.callback(self._inputs.close)
            self._outputs = OutputArena(outputs, slots, self._medium, signature.updates)
            owned.callback(self._outputs.close)
            if program.abi == "call":
                regions = self._outputs.regions
                self._results = ResultTable(program, signature, config, regions, slots)
                owned.callback(self._results.close)
                self._state = StateArena(signature, config, state, self._medium)
                owned.callback(self._state.close)
                if self._on_device:
                    accelerator().synchronize()  # the runner reads it as soon as it knows of it
                self.block: ControlBlock | CallBlock = self._call_block(
                    signature, config, copied=copied
                )
            else:
                self.block = self._native_block(program, signature, config)
            shared = shared_memory.shared_file(self.block.size, sealed=True)
            self._block_fd, self._block_memory = shared
            owned.callback(os.close, self._block_fd)
            self._block_memory[: self.block.order_offset] = self.block.encode()
            self._outputs.poison()
            self._owned = owned.pop_all()

    def _native_block(self, program: Program, signature: Signature, config: Config) -> ControlBlock:
        return ControlBlock(
            symbols=(f"{program.entry}_{config.dtype}", program.entry),
            inputs=self._inputs.regions,
            outputs=self._outputs.regions,
            scalars=tuple(scalar(pair, config) for pair in signature.scalars),
            dims=tuple((name, config.dims[name]) for name in signature.dims),
            strides=(self._inputs.stride, self._outputs.stride),
            sizes=(self._inputs.size, self._outputs.size),
            page=self._medium.page,
            slots=self.slots,
        )

    def _call_block(self, signature: Signature, config: Config, *, copied: bool) -> CallBlock:
        return CallBlock(
            inputs=self._inputs.regions,
            outputs=self._outputs.regions,
            state=self._state.regions,
            listed=tuple(a.name for a in (*signature.inputs, *signature.outputs) if a.listed),
            absent=config.absent,
            values={**dict(config.scalars), **config.dims},
            dtype=config.dtype,
            strides=(self._inputs.stride, self._outputs.stride),
            sizes=(self._inputs.size, self._outputs.size, self._state.size),
            slots=self.slots,
            copied=copied,
        )

    @property
    def fds(self) -> tuple[int, ...]:
        """Descriptors for LOAD: control block, inputs, outputs; for calls, results and state."""
        arenas = self._block_fd, self._inputs.fd, self._outputs.fd
        return (*arenas, self._results.fd, self._state.fd) if self._results else arenas

    def fetch(self, order: Sequence[int], read: Reader) -> None:
        """Read the returned tensors in place, from the memory of the frozen runner.

        Raises CandidateFault if they are not as declared.
        """
        if self._results:
            self._results.fetch(order, self._outputs, read)

    def add_scratch(self, size: int) -> OutputArena:
        """Allocate a workspace of ``size`` bytes, guarded like an output."""
        dtype = DTYPES["u8"]
        region = Region("workspace", 0, size, dtype.code, (size,))
        self._scratch = OutputArena([region], 1, self._medium)
        self._owned.callback(self._scratch.close)
        self._scratch.poison()
        return self._scratch

    def prepare(
        self, order: Sequence[int], inputs: Sequence[Mapping[str, Tensor]], repeats: int = 1
    ) -> None:
        """Fill the slots of a batch with fresh inputs, and poison everything that calls write.

        With ``repeats``, each slot is called that many times. A device's inputs are only checked
        here: ``fill`` copies them.
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
            accelerator().synchronize()

    def fill(self, order: Sequence[int], inputs: Sequence[Mapping[str, Tensor]]) -> int:
        """Copy the inputs to a device; returns the ns in excess of the shortest such copy.

        The runner is not frozen and waits for a request. If it began early, it would delay the rest
        of the copy.
        """
        started = time.monotonic_ns()
        self._write(order, inputs)
        session.evict()
        return self._held_up("fill", len(order), time.monotonic_ns() - started)

    def stage(
        self, order: Sequence[int], inputs: Sequence[Mapping[str, Tensor]], repeats: int = 1
    ) -> None:
        """``prepare`` for a batch behind a gate: its slots hold nothing until ``deliver``."""
        self.prepare(order, inputs, repeats)
        self._inputs.stage(order, inputs)
        self._outputs.stage(order, inputs)
        places = self._outputs.places(_PLACES)
        self._looks = [self._outputs.look_at(places) for _ in range(_LOOKS)]
        accelerator().synchronize()

    def deliver(self) -> None:
        """Deliver the inputs, and evict everything from the caches."""
        self._inputs.deliver()
        self._outputs.deliver()
        session.evict()

    def peek(self, number: int) -> None:
        """Read some of the outputs as they are now, within a few microseconds."""
        self._looks[number].take()

    def agrees(self, number: int) -> bool:
        """Whether the bytes that ``peek`` saw were unchanged when ``take`` was called."""
        return self._outputs.agrees(self._looks[number])

    def take(self) -> int:
        """Copy a device's outputs as they are now; returns the ns beyond the shortest such copy.

        Launched work continues while its process is frozen. Work launched too late is missing from
        the copy, or delays it.
        """
        if not self._on_device:
            return 0
        started = time.monotonic_ns()
        self._outputs.take()
        return self._held_up("take", 0, time.monotonic_ns() - started)

    def _write(self, order: Sequence[int], inputs: Sequence[Mapping[str, Tensor]]) -> None:
        for slot, tensors in zip(order, inputs, strict=True):
            self._inputs.write(slot, tensors)
            self._outputs.write(slot, tensors)

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
                self._refuse_changed(self._inputs.mutated(slot, tensors))

    def check_staged(self, order: Sequence[int]) -> None:
        """``check`` after ``stage``, without comparing every input separately."""
        self.check((), ())
        self._refuse_changed(self._inputs.altered(order))

    def _refuse_changed(self, name: str | None) -> None:
        if name is not None:
            raise diagnosis.fault(Reason.INPUT_MUTATED, f"changed its input '{name}'")

    def read(self, order: Sequence[int]) -> tuple[dict[str, Tensor], ...]:
        """Copies of the outputs of each call."""
        if self._results:
            found, reused = self._results.strides, self._results.reused
            return tuple(
                Outputs(self._outputs.read(slot, found.get(slot, {})), reused.get(slot, ()))
                for slot in order
            )
        return tuple(self._outputs.read(slot) for slot in order)

    def close(self) -> None:
        """Release the descriptors; may be called twice."""
        self._owned.close()


def region(argument: Argument, config: Config) -> Region:
    """A tensor of the signature, at the start of an arena."""
    dtype = DTYPES[shapes.dtype_name(argument, config)]
    shape = shapes.shape(argument, config.dims)
    strides = layouts.strides(argument, config.dims)
    size = layouts.span(shape, strides) * dtype.size
    apart = strides if strides != layouts.contiguous(shape) else ()
    return Region(argument.name, 0, size, dtype.code, shape, apart)


def scalar(declared: tuple[str, Scalar], config: Config) -> tuple[str, float | int]:
    """The config's value, converted to the declared type, hence C type. Raises ValueError."""
    name, default = declared
    value = config.scalars.get(name, default)
    if isinstance(value, str):
        raise ValueError(f"'{name}' is a text, which only calls can have")
    return name, float(value) if isinstance(default, float) else int(value)
