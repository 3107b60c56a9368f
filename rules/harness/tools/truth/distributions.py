"""Distributions of test values: changes to the task's own inputs.

Every change keeps shapes, dtypes and integer inputs as they are. Values stay below the bound
of their dtype, so that what overflows is the kernel's arithmetic and not the input; except in
``non_finite``, which only a task whose reference says what becomes of NaN can ask for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor

_SCALE = 100.0
_SPIKE = 1000.0
_SPIKE_SHARE = 0.01
_CONSTANT = 0.75
_OFFSETS = {"float16": 100.0, "bfloat16": 100.0}  # what leaves them some of the spread
_OFFSET = 1000.0
_DEPTHS = {"float16": 900.0, "bfloat16": 900.0}  # where exp() of a tenth is nothing in any dtype
_DEPTH = 30_000.0  # below what kernels take for the least value there is
_APART = 100.0  # products of two inputs are then far from zero, and still have a spread
_SPARSE_SHARE = 0.5
_STRANGE = ("nan", "inf", "-inf")
_BOUNDS = {"float16": 1000.0}
_BOUND = 1e6

Change = Callable[["Tensor", "Generator", int], "Tensor"]
"""Of one input, with its place among the floating ones."""


def apply(name: str, inputs: Mapping[str, Tensor], generator: Generator) -> dict[str, Tensor]:
    """``inputs`` with the floating ones changed; a name without a change leaves them."""
    change = CHANGES.get(name) or ON_REQUEST.get(name)
    if change is None:
        return dict(inputs)
    bounded = _bounded if name in CHANGES else _typed
    floating = (key for key, tensor in inputs.items() if tensor.is_floating_point())
    places = {key: place for place, key in enumerate(floating)}
    return {
        key: bounded(change(_wide(tensor), generator, places[key]), tensor)
        if key in places
        else tensor
        for key, tensor in inputs.items()
    }


def _wide(tensor: Tensor) -> Tensor:
    """Eight-bit numbers, in a dtype that has arithmetic."""
    return tensor.float() if tensor.itemsize == 1 else tensor


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _typed(changed: Tensor, original: Tensor) -> Tensor:
    return changed.to(original.dtype)


def _bounded(changed: Tensor, original: Tensor) -> Tensor:
    import torch

    bound = _BOUNDS.get(_name(original), _BOUND)
    kept = _wide(original).abs().amax().item() if original.numel() else 0.0
    limit = max(bound, kept)
    if original.itemsize == 1:
        limit = torch.finfo(original.dtype).max
    return changed.clamp(-limit, limit).to(original.dtype)


def _scaled_up(tensor: Tensor, *_: object) -> Tensor:
    return tensor.double() * _SCALE


def _scaled_down(tensor: Tensor, *_: object) -> Tensor:
    return tensor.double() / _SCALE


def _positive(tensor: Tensor, *_: object) -> Tensor:
    return tensor.abs()


def _negative(tensor: Tensor, *_: object) -> Tensor:
    return -tensor.abs()


def _zeros(tensor: Tensor, *_: object) -> Tensor:
    return tensor.new_zeros(tensor.shape)


def _constant(tensor: Tensor, *_: object) -> Tensor:
    return tensor.new_full(tensor.shape, _CONSTANT)


def _offset(tensor: Tensor, *_: object) -> Tensor:
    """Far from zero beside its spread: where sums of squares cancel."""
    return tensor.double() + _OFFSETS.get(_name(tensor), _OFFSET)


def _below(tensor: Tensor, *_: object) -> Tensor:
    """Far below zero: where a maximum that starts at zero, or at some large negative number, stays
    there."""
    return tensor.double() - _DEPTHS.get(_name(tensor), _DEPTH)


def _opposed(tensor: Tensor, _: Generator, place: int) -> Tensor:
    """Every second input far above zero, the others below: so are sums of their products."""
    return tensor.double() + (_APART if place % 2 else -_APART)


def _rows(tensor: Tensor, *_: object) -> Tensor:
    """Rows far below zero beside rows far above it: where one row's figure serves for another.

    Inputs of one row stay as they are.
    """
    import torch

    rows = math.prod(tensor.shape[:-1])
    if rows < 2 or not tensor.numel():
        return tensor
    above = torch.arange(rows, device=tensor.device).view(*tensor.shape[:-1], 1) % 2
    return tensor.double() + (2.0 * above - 1.0) * _DEPTHS.get(_name(tensor), _DEPTH)


def _ordered(tensor: Tensor, *_: object) -> Tensor:
    """Rows that rise and rows that fall, in turn: where the largest values are in one place.

    Without doubles, as sorting makes indices of eight bytes.
    """
    if not tensor.numel() or not tensor.dim():
        return tensor
    ordered = tensor.contiguous().sort(dim=-1).values
    falling = ordered.view(-1, tensor.shape[-1])[1::2]
    falling.copy_(falling.flip(-1))
    return ordered


def _sparse(tensor: Tensor, generator: Generator, _: int) -> Tensor:
    """Half of the elements are zeros: where a zero is taken for an element that is not there."""
    import torch

    kept = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) >= _SPARSE_SHARE
    return tensor.double() * kept.to(tensor.device)


def _non_finite(tensor: Tensor, generator: Generator, _: int) -> Tensor:
    """One NaN and one infinity of each sign, in elements that differ where there are enough."""
    import torch

    changed = tensor.double().clone().contiguous()
    places = torch.randperm(changed.numel(), generator=generator)[: len(_STRANGE)]
    for place, value in zip(places, _STRANGE, strict=False):
        changed.view(-1)[place] = float(value)
    return changed


def _spikes(tensor: Tensor, generator: Generator, _: int) -> Tensor:
    """About one element in a hundred, and at least one, a thousand times larger."""
    import torch

    hit = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) < _SPIKE_SHARE
    if tensor.numel():
        first = torch.randint(tensor.numel(), (), generator=generator)
        hit.view(-1)[first] = True
    return torch.where(hit, tensor.double() * _SPIKE, tensor.double())


def _denormal(tensor: Tensor, *_: object) -> Tensor:
    """Below the smallest normal number, with the signs of the original."""
    import torch

    fraction = torch.sigmoid(tensor.double()) * torch.finfo(tensor.dtype).tiny
    return torch.where(tensor < 0, -fraction, fraction)


CHANGES: Mapping[str, Change] = {
    "scaled_up": _scaled_up,
    "scaled_down": _scaled_down,
    "positive": _positive,
    "negative": _negative,
    "zeros": _zeros,
    "spikes": _spikes,
    "constant": _constant,
    "offset": _offset,
    "denormal": _denormal,
    "below": _below,
    "opposed": _opposed,
    "rows": _rows,
    "ordered": _ordered,
    "sparse": _sparse,
}
ON_REQUEST: Mapping[str, Change] = {"non_finite": _non_finite}
