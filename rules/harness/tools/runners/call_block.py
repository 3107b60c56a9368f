"""The description of a config for a task with a call. It is JSON, because only Python reads it.

The judge writes it, and it is read-only for the runner. Like the native runner's control block, it
is followed by one uint32 per slot: the slot of each call of a batch.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from base.program import Scalar

from runners.control_block import Region

_LENGTH = struct.Struct("<Q")
_ALIGNMENT = 8


@dataclass(frozen=True)
class CallBlock:
    """A config as the runner of a call sees it.

    Attributes:
        listed: the tensors whose first axis is the index in a list.
        absent: the names of arguments that are ``None``.
        values: scalars and dims by name.
        dtype: the dtype for ``T``.
        strides: bytes between slots, of the input arena and of the output arena.
        sizes: bytes of the two arenas and of the state.
        copied: whether the runner copies returned tensors into the outputs; otherwise the judge
            reads them in place.
    """

    inputs: tuple[Region, ...]
    outputs: tuple[Region, ...]
    state: tuple[Region, ...]
    listed: tuple[str, ...]
    absent: tuple[str, ...]
    values: Mapping[str, Scalar]
    dtype: str
    strides: tuple[int, int]
    sizes: tuple[int, int, int]
    slots: int
    copied: bool

    @property
    def symbols(self) -> tuple[str, ...]:
        """Empty: a call looks nothing up by symbol."""
        return ()

    @cached_property
    def _text(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @property
    def order_offset(self) -> int:
        """Where the order of the slots begins."""
        return -(-(_LENGTH.size + len(self._text)) // _ALIGNMENT) * _ALIGNMENT

    @property
    def size(self) -> int:
        """Bytes of the block and the order behind it."""
        return self.order_offset + 4 * self.slots

    def encode(self) -> bytes:
        """The bytes of the block, without the order."""
        return (_LENGTH.pack(len(self._text)) + self._text).ljust(self.order_offset, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> CallBlock:
        """Read a block."""
        (length,) = _LENGTH.unpack_from(data)
        said: dict[str, Any] = json.loads(data[_LENGTH.size : _LENGTH.size + length])
        for name in ("inputs", "outputs", "state"):
            said[name] = tuple(_region(item) for item in said[name])
        for name in ("listed", "absent", "strides", "sizes"):
            said[name] = tuple(said[name])
        return cls(**said)


def _region(item: Mapping[str, Any]) -> Region:
    return Region(**{**item, "shape": tuple(item["shape"]), "strides": tuple(item["strides"])})
