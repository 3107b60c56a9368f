"""Distributions of test values: changes to the task's own inputs.

Every change keeps shapes, dtypes and integer inputs as they are. Values stay below the bound
of their dtype, so that what overflows is the kernel's arithmetic and not the input; except in
``non_finite``, which only a task whose reference says what becomes of NaN can ask for.
"""

from __future__ import annotations

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
_STRANGE = ("nan", "inf", "-inf")
_BOUNDS = {"float16": 1000.0}
_BOUND = 1e6

Change = Callable[["Tensor", "Generator"], "Tensor"]


def apply(name: str, inputs: Mapping[str, Tensor], generator: Generator) -> dict[str, Tensor]:
    """``inputs`` with the floating ones changed; a name without a change leaves them."""
    change = CHANGES.get(name) or ON_REQUEST.get(name)
    if change is None:
        return dict(inputs)
    bounded = _bounded if name in CHANGES else _typed
    return {
        key: bounded(change(_wide(tensor), generator), tensor)
        if tensor.is_floating_point()
        else tensor
        for key, tensor in inputs.items()
    }


def _wide(tensor: Tensor) -> Tensor:
    """Eight-bit numbers, in a dtype that has arithmetic."""
    return tensor.float() if tensor.itemsize == 1 else tensor


def _typed(changed: Tensor, original: Tensor) -> Tensor:
    return changed.to(original.dtype)


def _bounded(changed: Tensor, original: Tensor) -> Tensor:
    import torch

    bound = _BOUNDS.get(str(original.dtype).rpartition(".")[2], _BOUND)
    kept = _wide(original).abs().amax().item() if original.numel() else 0.0
    limit = max(bound, kept)
    if original.itemsize == 1:
        limit = torch.finfo(original.dtype).max
    return changed.clamp(-limit, limit).to(original.dtype)


def _scaled_up(tensor: Tensor, _: Generator) -> Tensor:
    return tensor.double() * _SCALE


def _scaled_down(tensor: Tensor, _: Generator) -> Tensor:
    return tensor.double() / _SCALE


def _positive(tensor: Tensor, _: Generator) -> Tensor:
    return tensor.abs()


def _negative(tensor: Tensor, _: Generator) -> Tensor:
    return -tensor.abs()


def _zeros(tensor: Tensor, _: Generator) -> Tensor:
    return tensor.new_zeros(tensor.shape)


def _constant(tensor: Tensor, _: Generator) -> Tensor:
    return tensor.new_full(tensor.shape, _CONSTANT)


def _offset(tensor: Tensor, _: Generator) -> Tensor:
    """Far from zero beside its spread: where sums of squares cancel."""
    return tensor.double() + _OFFSETS.get(str(tensor.dtype).rpartition(".")[2], _OFFSET)


def _non_finite(tensor: Tensor, generator: Generator) -> Tensor:
    """One NaN and one infinity of each sign, in elements that differ where there are enough."""
    import torch

    changed = tensor.double().clone().contiguous()
    places = torch.randperm(changed.numel(), generator=generator)[: len(_STRANGE)]
    for place, value in zip(places, _STRANGE, strict=False):
        changed.view(-1)[place] = float(value)
    return changed


def _spikes(tensor: Tensor, generator: Generator) -> Tensor:
    """About one element in a hundred, and at least one, a thousand times larger."""
    import torch

    hit = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) < _SPIKE_SHARE
    if tensor.numel():
        first = torch.randint(tensor.numel(), (), generator=generator)
        hit.view(-1)[first] = True
    return torch.where(hit, tensor.double() * _SPIKE, tensor.double())


def _denormal(tensor: Tensor, _: Generator) -> Tensor:
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
}
ON_REQUEST: Mapping[str, Change] = {"non_finite": _non_finite}
