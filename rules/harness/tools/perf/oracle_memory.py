"""The memory of a device that verifying one call takes, found out without any data.

PyTorch's device ``meta`` has tensors without contents. There the inputs are drawn, the oracle
computes, and its outputs are compared, as for a call; what is alive at each operation is counted.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from base import shapes
from base.program import Argument, Config, Signature
from base.tensors import torch_dtype
from terms.policy import DEFAULT
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from truth.assessment import Call
from truth.judge import Judge
from truth.oracle import SLICE, TaskFault

UNCOUNTED_COPIES = 6
"""Doubles for each element of the largest tensor, where the oracle needs data to be run."""

_DRAWN_BYTES = 12  # for each element of the largest input, where drawing it needs data
_MOST_OPERATIONS = 5000
_NUDGED = 6  # doubles for each element of a slice whose elements are moved by one rounding
_BESIDE = 4  # copies of the outputs that are held while the oracle runs on moved inputs
_DOUBLE = 8


@dataclass(frozen=True)
class Verification:
    """The bytes that verifying one call takes besides inputs and outputs.

    Attributes:
        bytes: at most.
        counted: whether they were counted; else they are ``UNCOUNTED_COPIES``, or more where more
            was seen before the count ended.
    """

    bytes: int
    counted: bool

    @classmethod
    def of(cls, judge: Judge, signature: Signature, config: Config) -> Verification:
        """Count for one config. Takes no memory of the device."""
        largest = max(map(_elements, _empty(signature.of(config), config).values()))
        ledger = _Ledger()
        try:
            with _counted(ledger):
                _verify(judge, signature, config, ledger)
        except (TaskFault, RuntimeError, _TooLongError):  # it asks for values, which are not there
            bound = UNCOUNTED_COPIES * _DOUBLE * largest
            return cls(max(bound, ledger.peak), counted=False)
        return cls(max(ledger.peak, _drawn(judge, signature, config)), counted=True)


class _TooLongError(Exception):
    """More operations than are worth counting."""


class _Ledger(TorchDispatchMode):
    """Counts the bytes of all tensors that are made while it is in force.

    An operation that does not work element by element may hold a copy of its largest operand that
    nobody sees from outside: such a copy is added while it runs.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held = 0
        self.peak = 0
        self._operations = 0
        self._tensors: dict[int, int] = {}  # how many are alive, by the address of their storage

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self._operations += 1
        if self._operations > _MOST_OPERATIONS:
            raise _TooLongError
        made = function(*args, **(kwargs or {}))
        given = [item for item in tree_leaves((args, kwargs)) if isinstance(item, Tensor)]
        known = {id(tensor) for tensor in given}
        for item in tree_leaves(made):
            if isinstance(item, Tensor) and id(item) not in known:
                self._add(item)
        plain = function.is_view or torch.Tag.pointwise in function.tags
        unseen = 0 if plain else max((_held(tensor) for tensor in given), default=0)
        self.note(unseen)
        return made

    def note(self, more: int) -> None:
        """Count ``more`` bytes as held for a moment."""
        self.peak = max(self.peak, self.held + more)

    def _add(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        address, size = storage._cdata, storage.nbytes()  # noqa: SLF001 - its identity
        if address not in self._tensors:
            self.held += size
        self._tensors[address] = self._tensors.get(address, 0) + 1
        weakref.finalize(tensor, self._drop, address, size)

    def _drop(self, address: int, size: int) -> None:
        self._tensors[address] -= 1
        if not self._tensors[address]:
            del self._tensors[address]
            self.held -= size


@contextmanager
def _counted(ledger: _Ledger) -> Iterator[None]:
    with torch.device("meta"), torch.no_grad(), ledger:
        yield


def _verify(judge: Judge, signature: Signature, config: Config, ledger: _Ledger) -> None:
    """What is done with the outputs of one call. Raises TaskFault where that needs data."""
    inputs = _empty(signature.of(config), config)
    answer = judge.oracle.expected(config, inputs)
    outputs = {argument.name: _tensor(argument, config) for argument in signature.results}
    written = sum(_DOUBLE * _elements(tensor) for tensor in answer.values())
    computing = ledger.peak
    call = Call(config, DEFAULT, inputs, answer)
    judge.assessor.measured(call, outputs)
    judge.assessor.overs(call, outputs)
    if judge.oracle.structured:  # its check gets copies
        ledger.note(sum(map(_held, (*inputs.values(), *outputs.values(), *answer.values()))))
    if judge.assessor.sampled:
        raise TaskFault("what is drawn is tested with its values")
    sizes = [_elements(tensor) for tensor in inputs.values()]
    moving = _NUDGED * _DOUBLE * min(SLICE, max(sizes, default=0))
    again = computing + moving + _BESIDE * written
    ledger.peak = max(ledger.peak, again)


def _drawn(judge: Judge, signature: Signature, config: Config) -> int:
    """The bytes that drawing the inputs takes."""
    ledger = _Ledger()
    try:
        with _counted(ledger):
            judge.oracle.inputs(config, torch.Generator("cpu"))
    except (TaskFault, RuntimeError, _TooLongError):
        taken = _empty(signature.of(config), config)
        largest = max((_elements(taken[a.name]) for a in signature.of(config).inputs), default=0)
        return max(ledger.peak, _DRAWN_BYTES * largest)
    return ledger.peak


def _empty(signature: Signature, config: Config) -> Mapping[str, Tensor]:
    """Inputs and state without contents."""
    arguments = (*signature.inputs, *signature.state)
    return {argument.name: _tensor(argument, config) for argument in arguments}


def _tensor(argument: Argument, config: Config) -> Tensor:
    dtype = torch_dtype(shapes.dtype_name(argument, config))
    return torch.empty(shapes.shape(argument, config.dims), dtype=dtype, device="meta")


def _elements(tensor: Tensor) -> int:
    return tensor.numel()


def _held(tensor: Tensor) -> int:
    return int(tensor.untyped_storage().nbytes())
