"""Checks the results of calls, and records them for the judge or copies them."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from base import layouts
from pyrunner.calls import WrongDtype, WrongShape
from runners.call_block import CallBlock
from runners.results import MAX_RANK, RECORD, returned
from terms.dtypes import BY_CODE, DTYPES
from torch import Tensor

_CODES = {
    getattr(torch, dtype.torch_name, None): dtype.code
    for dtype in DTYPES.values()
    if not dtype.given_as  # types stored as bytes are never returned, and would replace uint8
}


class WrongType(Exception):  # noqa: N818 (the candidate's, no error of ours)
    """A result is not a plain tensor, or it is on another device."""


class WrongLayout(Exception):  # noqa: N818
    """A returned tensor is not plain strided memory."""


class Aliased(Exception):  # noqa: N818
    """A returned tensor is in the memory of an input, or of another call's output."""


@dataclass(frozen=True)
class Wanted:
    """One tensor that a call returns.

    Attributes:
        strides: the declared ones, in elements; contiguous by default.
    """

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    strides: tuple[int, ...]


class Returned:
    """Takes the results of a config's calls.

    Args:
        table: the records that the judge reads, one for each result of each slot.
        arenas: the addresses of the judge's inputs and of its outputs. No result may lie in the
            inputs; in the outputs it may lie only in its own slot.
        home: the type of the device that calls compute on; a result may also be on the host.
    """

    def __init__(
        self,
        block: CallBlock,
        targets: Any,
        table: mmap.mmap,
        arenas: Sequence[range],
        outputs: Sequence[Mapping[str, Any]],
        *,
        home: str,
    ) -> None:
        self._home = home
        self._targets = targets
        self._table = table
        self._arenas = arenas
        self._stride = block.strides[1]
        self._outputs = outputs
        placed = {region.name: region for region in block.outputs}
        self._wanted: list[Wanted] = []
        for name in returned(targets):
            region = placed[name]
            dtype: torch.dtype = getattr(torch, BY_CODE[region.code].torch_name)
            strides = region.strides or layouts.contiguous(region.shape)
            if name in block.listed:
                part = Wanted(name, region.shape[1:], dtype, strides[1:])
                self._wanted += [part] * region.shape[0]
            else:
                self._wanted.append(Wanted(name, region.shape, dtype, strides))
        self._listed = frozenset(block.listed)

    @property
    def any(self) -> bool:
        """Whether calls return any results that are judged."""
        return bool(self._wanted)

    def note(self, slot: int, result: Any) -> None:
        """Record where the results of a call lie. Raises what ``copy`` raises."""
        at = slot * RECORD.size * len(self._wanted)
        for wanted, tensor in self._pairs(result):
            address = self._checked(slot, wanted, tensor)
            shape, steps = tensor.shape, tensor.stride()
            gap = (0,) * (MAX_RANK - len(shape))
            code = _CODES[tensor.dtype]
            RECORD.pack_into(self._table, at, address, code, len(shape), *shape, *gap, *steps, *gap)
            at += RECORD.size

    def copy(self, slot: int, result: Any) -> None:
        """Copy the results of a call into the outputs of its slot.

        Raises WrongType, WrongShape, WrongDtype, WrongLayout and Aliased.
        """
        seen: dict[str, int] = {}
        for wanted, tensor in self._pairs(result):
            self._checked(slot, wanted, tensor)
            target = self._outputs[slot][wanted.name]
            if wanted.name in self._listed:
                index = seen[wanted.name] = seen.get(wanted.name, -1) + 1
                target = target[index]
            if target.data_ptr() != tensor.data_ptr():
                target.copy_(tensor)

    def _pairs(self, result: Any) -> Iterator[tuple[Wanted, Any]]:
        return zip(self._wanted, self._flat(self._targets, result), strict=True)

    def _flat(self, targets: Any, result: Any) -> Iterator[Any]:
        """The results that have a name, in the order of the targets. Raises WrongShape."""
        if targets is None:
            return
        if isinstance(targets, str) and targets not in self._listed:
            yield result
            return
        names = targets
        if isinstance(targets, str):
            count = sum(wanted.name == targets for wanted in self._wanted)
            names = [_ITEM] * count
        if not isinstance(result, tuple | list) or len(result) != len(names):
            size = f" of {len(result)}" if isinstance(result, tuple | list) else ""
            raise WrongShape(f"a {type(result).__name__}{size}, expected {len(names)} results")
        for name, item in zip(names, result, strict=True):
            if name is _ITEM:
                yield item
            else:
                yield from self._flat(name, item)

    def _checked(self, slot: int, wanted: Wanted, tensor: Any) -> int:
        """The address of a result, once it is checked against the declaration."""
        name = wanted.name
        if type(tensor) is not Tensor:
            raise WrongType(f"'{name}' is a {type(tensor).__name__}, expected a torch.Tensor")
        if tensor.shape != wanted.shape:
            raise WrongShape(
                f"'{name}' has shape {list(tensor.shape)}, expected {list(wanted.shape)}"
            )
        if tensor.dtype != wanted.dtype:
            raise WrongDtype(f"'{name}' is {tensor.dtype}, expected {wanted.dtype}")
        if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
            raise WrongLayout(f"'{name}' is not plain memory")
        if tensor.device.type not in {"cpu", self._home}:
            raise WrongType(f"'{name}' is on the device '{tensor.device}'")
        address = tensor.data_ptr()
        inputs, outputs = self._arenas
        if address in inputs:
            raise Aliased(f"'{name}' is in the memory of an input")
        if address in outputs and (address - outputs.start) // self._stride != slot:
            raise Aliased(f"'{name}' is in the memory of another call's output")
        return address


_ITEM = object()
