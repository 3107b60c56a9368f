"""The control block: how a runner learns a config. Read-only shared memory, fixed layout.

The native runner has the same layout in ``runner/control_block.h``. All numbers are
little-endian; names are UTF-8, padded with zeros.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

MAGIC = 0x4B434252  # "RBCK"
MAX_TENSORS = 16  # limit for inputs and for outputs
MAX_SCALARS = 16
MAX_DIMS = 16
MAX_RANK = 8
MAX_WORDS = 48  # pointers and integers of one native call
MAX_FLOATS = 8
_NAME = 32
_SYMBOL = 128
_HEADER = struct.Struct("<II128s128s6I5Q")
_TENSOR = struct.Struct("<32sQQII8q")
_SCALAR = struct.Struct("<32sIIqd")
_DIM = struct.Struct("<32sq")
_VERSION = 1
_INTEGER, _FLOAT = 0, 1


@dataclass(frozen=True)
class Region:
    """A tensor in its arena.

    Attributes:
        first: offset of its first byte in slot 0.
        size: bytes of one slot's tensor.
        code: its dtype's code.
        strides: in elements; none if it is contiguous.
    """

    name: str
    first: int
    size: int
    code: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class ControlBlock:
    """A config as the runner sees it.

    Attributes:
        symbols: names of the entry, in the order of lookup.
        strides: bytes between slots, of the input arena and of the output arena.
        sizes: bytes of the two arenas.
        page: the page size that the arenas are laid out for.
        slots: the most calls of a batch. The block is followed by as many uint32: the slot of
            each call, rewritten by the judge before every batch.
    """

    symbols: tuple[str, str]
    inputs: tuple[Region, ...]
    outputs: tuple[Region, ...]
    scalars: tuple[tuple[str, float | int], ...]
    dims: tuple[tuple[str, int], ...]
    strides: tuple[int, int]
    sizes: tuple[int, int]
    page: int
    slots: int

    @property
    def order_offset(self) -> int:
        """Where the order of the slots begins."""
        tensors = len(self.inputs) + len(self.outputs)
        size = _HEADER.size + tensors * _TENSOR.size
        return size + len(self.scalars) * _SCALAR.size + len(self.dims) * _DIM.size

    @property
    def size(self) -> int:
        """Bytes of the block and the order behind it."""
        return self.order_offset + 4 * self.slots

    def encode(self) -> bytes:
        """The bytes of the block, without the order.

        Raises ValueError if the signature exceeds the layout's limits.
        """
        self._check_limits()
        counts = (len(self.inputs), len(self.outputs), len(self.scalars), len(self.dims))
        symbols = [_text(symbol, _SYMBOL) for symbol in self.symbols]
        geometry = (*self.strides, *self.sizes, self.order_offset)
        header = (MAGIC, _VERSION, *symbols, *counts, self.slots, self.page, *geometry)
        parts = [_HEADER.pack(*header)]
        for region in (*self.inputs, *self.outputs):
            shape = (*region.shape, *(0,) * (MAX_RANK - len(region.shape)))
            fields = (region.first, region.size, region.code, len(region.shape), *shape)
            parts.append(_TENSOR.pack(_text(region.name, _NAME), *fields))
        for name, value in self.scalars:
            kind = _FLOAT if isinstance(value, float) else _INTEGER
            integer = 0 if kind == _FLOAT else int(value)
            parts.append(_SCALAR.pack(_text(name, _NAME), kind, 0, integer, float(value)))
        parts += [_DIM.pack(_text(name, _NAME), value) for name, value in self.dims]
        return b"".join(parts)

    def _check_limits(self) -> None:
        floats = sum(isinstance(value, float) for _, value in self.scalars)
        tensors = len(self.inputs) + len(self.outputs)
        words = tensors + len(self.scalars) - floats + len(self.dims) + 2  # workspace, stream
        for what, count, limit in (
            ("float arguments", floats, MAX_FLOATS),
            ("pointer and integer arguments", words, MAX_WORDS),
            ("inputs", len(self.inputs), MAX_TENSORS),
            ("outputs", len(self.outputs), MAX_TENSORS),
            ("scalars", len(self.scalars), MAX_SCALARS),
            ("dims", len(self.dims), MAX_DIMS),
        ):
            if count > limit:
                raise ValueError(f"{count} {what}: an entry has at most {limit}")
        for region in (*self.inputs, *self.outputs):
            if len(region.shape) > MAX_RANK:
                raise ValueError(f"'{region.name}' has more than {MAX_RANK} axes")

    @classmethod
    def decode(cls, data: bytes) -> ControlBlock:
        """Read a block. Raises ValueError or struct.error if it is not one."""
        magic, version, symbol, fallback, *rest = _HEADER.unpack_from(data)
        if (magic, version) != (MAGIC, _VERSION):
            raise ValueError("no control block of this version")
        inputs, outputs, scalars, dims, slots, page, *geometry = rest
        reader = _Reader(data, _HEADER.size)
        return cls(
            symbols=(_name(symbol), _name(fallback)),
            inputs=tuple(reader.tensor() for _ in range(inputs)),
            outputs=tuple(reader.tensor() for _ in range(outputs)),
            scalars=tuple(reader.scalar() for _ in range(scalars)),
            dims=tuple(reader.dim() for _ in range(dims)),
            strides=(geometry[0], geometry[1]),
            sizes=(geometry[2], geometry[3]),
            page=page,
            slots=slots,
        )


class _Reader:
    """Reads one record after another."""

    def __init__(self, data: bytes, offset: int) -> None:
        self.data = data
        self.offset = offset

    def tensor(self) -> Region:
        name, first, size, code, rank, *shape = self._take(_TENSOR)
        return Region(_name(name), first, size, code, tuple(shape[:rank]))

    def scalar(self) -> tuple[str, float | int]:
        name, kind, _, integer, real = self._take(_SCALAR)
        return _name(name), real if kind == _FLOAT else integer

    def dim(self) -> tuple[str, int]:
        name, value = self._take(_DIM)
        return _name(name), value

    def _take(self, layout: struct.Struct) -> tuple[Any, ...]:
        fields = layout.unpack_from(self.data, self.offset)
        self.offset += layout.size
        return fields


def _text(value: str, room: int) -> bytes:
    data = value.encode()
    if len(data) >= room:
        raise ValueError(f"'{value}' is longer than {room - 1} bytes")
    return data


def _name(data: bytes) -> str:
    return data.rstrip(b"\0").decode()
