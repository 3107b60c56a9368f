"""The device memory that verifying one call takes, mostly determined without any data.

PyTorch's device ``meta`` has tensors without contents. The inputs are drawn there, the oracle
computes, and its outputs are compared, as for a real call; the bytes alive at each operation are
counted. An oracle that needs values is run once with them, where the call's tensors will be.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from base import shapes
from base.program import Argument, Config, Signature
from base.seeds import Seeds
from base.tensors import torch_dtype
from terms.policy import DEFAULT
from torch import Tensor
from torch.utils._pytree import tree_leaves
from truth.assessment import Call, Tensors
from truth.dispatch import UncompiledMode
from truth.fitting import fitting
from truth.judge import Judge
from truth.oracle import TaskFault
from truth.precision import SLICE

from perf.light_imports import light_imports

STAGE = "memory"
UNCOUNTED_COPIES = 6
"""Doubles for each element of the largest tensor, if the oracle is too long to count."""

_SMALL = 1 << 16  # elements
_DRAWN_BYTES = 12  # for each element of the largest input, if drawing it needs data
_MOST_OPERATIONS = 5000
_NUDGED = 6  # doubles for each element of a slice whose elements are nudged by one rounding
_TESTED = 4  # copies of sampled outputs while their distribution is tested
_BESIDE = 3  # copies of the outputs held while the oracle runs on nudged inputs
_DOUBLE = 8


@dataclass(frozen=True)
class Verification:
    """The bytes that verifying one call takes besides inputs and outputs.

    Attributes:
        bytes: an upper limit.
        least: the same where no output is so far off that the oracle runs on nudged inputs.
        counted: whether everything was counted. If not, ``bytes`` is ``UNCOUNTED_COPIES``, or
            the count so far if that is more.
    """

    bytes: int
    least: int
    counted: bool

    @classmethod
    def of(cls, judge: Judge, signature: Signature, config: Config) -> Verification:
        """Count for one config.

        Raises MachineFault if counting takes values and there is no memory for them; TaskFault.
        """
        ledger = _Ledger()
        for device in ("meta", torch.get_default_device()):
            ledger = _Ledger()
            try:
                with fitting(config):
                    found = _count(judge, signature, config, device, ledger)
                    drawing = _drawn(judge, signature, config)
                    most, least = (max(drawing, size) for size in found)
                    return cls(most, least, counted=True)
            except (TaskFault, RuntimeError):
                if ledger.full:
                    break
                if device != "meta":
                    raise  # on meta it fails because it needs values
        largest = max(map(_elements, _empty(signature.of(config), config).values()))
        most = max(UNCOUNTED_COPIES * _DOUBLE * largest, ledger.peak)
        return cls(most, most, counted=False)


class _TooLongError(RuntimeError):
    """More operations than are worth counting."""


def _without_data(args: Sequence[Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of an operation, with no contents for a large tensor that is made on the CPU.

    Originals may draw on the device of the generator, which is the CPU's where nothing has values.
    """
    if torch.device("cpu") != named.get("device"):
        return named
    sizes = [math.prod(arg) if isinstance(arg, list | tuple) else arg for arg in args]
    if max((size for size in sizes if type(size) is int), default=0) <= _SMALL:
        return named
    return {**named, "device": torch.device("meta")}


class _Ledger(UncompiledMode):  # type: ignore[no-untyped-call]  # PyTorch has no types
    """Counts the bytes of all tensors that are made while it is active.

    An operation that does not work element by element may hold an internal copy of its largest
    operand: such a copy is counted while the operation runs, and a convolution's columns.
    """

    def __init__(self) -> None:
        super().__init__()
        self.without_data = False
        self.held = 0
        self.peak = 0
        self.full = False
        self._operations = 0
        self._tensors: dict[int, int] = {}  # tensors alive, by the address of their storage

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self._operations += 1
        if self._operations > _MOST_OPERATIONS:
            self.full = True
            raise _TooLongError
        named = kwargs or {}
        made = function(*args, **(_without_data(args, named) if self.without_data else named))
        given = [item for item in tree_leaves((args, kwargs)) if isinstance(item, Tensor)]
        known = {id(tensor) for tensor in given}
        for item in tree_leaves(made):
            if isinstance(item, Tensor) and id(item) not in known:
                self._add(item)
        plain = function.is_view or torch.Tag.pointwise in function.tags
        unseen = 0 if plain else max(map(_copied, given), default=0)
        self.note(unseen + _columns(function, args, made))
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
def _counted(ledger: _Ledger, device: str | torch.device) -> Iterator[None]:
    ledger.without_data = torch.device(device).type == "meta"
    with light_imports(), torch.device(device), torch.no_grad(), ledger:
        yield


def _count(
    judge: Judge, signature: Signature, config: Config, device: str | torch.device, ledger: _Ledger
) -> tuple[int, int]:
    """The most and the least bytes besides the call's own.

    Raises TaskFault or RuntimeError if it needs values.
    """
    with _counted(ledger, device):
        if device == "meta":
            inputs = _empty(signature.of(config), config)
        else:
            generator = Seeds("", "", STAGE).generator(STAGE, config.name, 0)
            inputs = judge.oracle.inputs(config, generator)
            inputs = {**inputs, **judge.oracle.state(config, generator)}
        drawing, own = ledger.peak, ledger.held
        ledger.peak = own
        again = _verify(judge, signature, config, inputs, ledger)
    least = max(drawing, ledger.peak - own)
    return max(least, again - own), least


def _verify(
    judge: Judge, signature: Signature, config: Config, inputs: Tensors, ledger: _Ledger
) -> int:
    """Do what the judge does with a call's outputs. Raises TaskFault if that needs values.

    Returns the bytes that were held if the oracle ran again, on nudged inputs.
    """
    answer = judge.oracle.expected(config, inputs)
    outputs = {argument.name: _tensor(argument, config) for argument in signature.results}
    written = sum(_DOUBLE * _elements(tensor) for tensor in answer.values())
    computing = ledger.peak
    call = Call(config, DEFAULT, inputs, answer)
    count = judge.assessor.together(outputs)
    others = (count - 1) * written  # copies of answers that are there while the last is computed
    ledger.peak = max(ledger.peak, computing + others)
    judge.assessor.measured([call] * count, [outputs] * count)
    judge.assessor.overs(call, outputs)
    if judge.oracle.structured:  # the task's own check gets copies
        ledger.note(sum(map(_held, (*inputs.values(), *outputs.values(), *answer.values()))))
    if drawn := {name: _wide(outputs[name]) for name in judge.assessor.sampled}:
        judge.oracle.cdf(config, inputs, drawn)
        ledger.note(_TESTED * sum(map(_held, drawn.values())))
    sizes = [_elements(tensor) for tensor in inputs.values()]
    moving = _NUDGED * _DOUBLE * min(SLICE, max(sizes, default=0))
    return computing + moving + _BESIDE * written


def _drawn(judge: Judge, signature: Signature, config: Config) -> int:
    """The bytes that drawing the inputs takes."""
    ledger = _Ledger()
    try:
        with _counted(ledger, "meta"):
            judge.oracle.inputs(config, torch.Generator("cpu"))
    except (TaskFault, RuntimeError):
        taken = _empty(signature.of(config), config)
        largest = max((_elements(taken[a.name]) for a in signature.of(config).inputs), default=0)
        return max(ledger.peak, _DRAWN_BYTES * largest)
    return ledger.peak


def _columns(function: Any, args: Sequence[Any], made: Any) -> int:
    """The bytes of the columns of one sample, of which a convolution is a product of matrices.

    One of several groups is a loop over them, whose results are copied beside each other.
    """
    match function:
        case torch.ops.aten.convolution.default:
            given, weight, transposed, groups = args[0], args[1], args[6], args[8]
            wide, joined = given if transposed else made, (made,)
        case torch.ops.aten.convolution_backward.default:
            gradient, given, weight, transposed, groups = *args[:3], args[7], args[9]
            wide, joined = given if transposed else gradient, made
        case _:
            return 0
    columns = math.prod((*weight.shape[1:], *wide.shape[2:], int(weight.itemsize)))
    copied = sum(_held(item) for item in joined if item is not None) if groups > 1 else 0
    return columns + copied


def _empty(signature: Signature, config: Config) -> Mapping[str, Tensor]:
    """Inputs and state without contents."""
    arguments = (*signature.inputs, *signature.state)
    with torch.device("meta"):
        return {argument.name: _tensor(argument, config) for argument in arguments}


def _tensor(argument: Argument, config: Config) -> Tensor:
    dtype = torch_dtype(shapes.dtype_name(argument, config))
    return torch.zeros(shapes.shape(argument, config.dims), dtype=dtype)


def _wide(tensor: Tensor) -> Tensor:
    """A tensor in the dtype in which a distribution function gets outputs."""
    return tensor.double() if tensor.is_floating_point() else tensor.long()


def _elements(tensor: Tensor) -> int:
    return tensor.numel()


def _copied(tensor: Tensor) -> int:
    """The bytes of a copy of a tensor, which may be a part of another one."""
    return min(_held(tensor), tensor.numel() * tensor.element_size())


def _held(tensor: Tensor) -> int:
    return int(tensor.untyped_storage().nbytes())
