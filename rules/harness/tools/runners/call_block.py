"""How a runner learns a config of a task with a call: as JSON, for only Python reads it.

The judge writes it, and it is read-only for the runner. Behind it lie, as behind the native
runner's control block, as many uint32 as there are slots: the slot of each call of a batch.
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
        listed: the tensors whose first axis is a list's.
        absent: the names in whose place is ``None``.
        values: scalars and dims by name.
        dtype: what ``T`` stands for.
        strides: bytes between slots, of the input arena and of the output arena.
        sizes: bytes of the two arenas and of the state.
        copied: whether the runner copies what is returned into the outputs; else the judge reads
            it where it lies.
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
        """Nothing is looked up here by a symbol."""
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
        """Bytes of the block with the order behind it."""
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
