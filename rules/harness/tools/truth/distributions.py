"""Distributions of test values: changes to the task's own inputs.

Every change keeps shapes, dtypes and integer inputs as they are. Values stay below the bound
of their dtype, so that only the kernel's arithmetic overflows, not the input. The exception is
``non_finite``: a task can ask for it only if its reference defines what becomes of NaN.
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
_OFFSETS = {"float16": 100.0, "bfloat16": 100.0}  # small enough to keep some spread
_OFFSET = 1000.0
_DEPTHS = {"float16": 900.0, "bfloat16": 900.0}  # exp(-depth / 10) vanishes in any dtype
_DEPTH = 30_000.0  # below what kernels use as the lowest possible value
_APART = 100.0  # keeps products of two inputs far from zero, and still spread
_SPARSE_SHARE = 0.5
_STRANGE = ("nan", "inf", "-inf")
_BOUNDS = {"float16": 1000.0}
_BOUND = 1e6
_LARGE = 1 << 24  # elements
_STEP, _LEAST_STEPS = 64, 16

Change = Callable[["Tensor", "Generator", int], "Tensor"]
"""Changes one input, given its position among the floating-point inputs."""


def apply(name: str, inputs: Mapping[str, Tensor], generator: Generator) -> dict[str, Tensor]:
    """``inputs`` with the floating-point ones changed; all unchanged if ``name`` has no change.

    Large ones are changed a few rows at a time: in doubles they may not fit a device.
    """
    changed = dict(inputs)
    floating = [key for key, tensor in inputs.items() if tensor.is_floating_point()]
    for place, key in enumerate(floating):
        tensor = inputs[key]
        if change := CHANGES.get(name):
            changed[key] = _changed(change, tensor, generator, place)
        elif change := ON_REQUEST.get(name):
            changed[key] = change(_wide(tensor), generator, place).to(tensor.dtype)
    return changed


def _changed(change: Change, tensor: Tensor, generator: Generator, place: int) -> Tensor:
    import torch

    limit = _limit(tensor)

    def made(rows: Tensor) -> Tensor:
        return change(_wide(rows), generator, place).clamp(-limit, limit).to(tensor.dtype)

    if tensor.numel() <= _LARGE:
        return made(tensor)
    change = _FOR_LARGE.get(change, change)
    count = max(1, _LARGE * len(tensor) // tensor.numel())
    count -= count % 2 if count > 1 else 0  # ``rows`` treats them in turn
    whole = torch.empty_like(tensor)
    for first in range(0, len(tensor), count):
        whole[first : first + count] = made(tensor[first : first + count])
    return whole


def _wide(tensor: Tensor) -> Tensor:
    """The tensor, with 8-bit numbers in a dtype that has arithmetic."""
    return tensor.float() if tensor.itemsize == 1 else tensor


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _limit(original: Tensor) -> float:
    """The largest magnitude that a change of a tensor may make."""
    import torch

    if original.itemsize == 1:
        return torch.finfo(original.dtype).max
    bound = _BOUNDS.get(_name(original), _BOUND)
    if not original.numel():
        return bound
    low, high = (float(end.item()) for end in torch.aminmax(original))
    return max(bound, -low, high)


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
    """Values far from zero relative to their spread, where sums of squares cancel."""
    return tensor.double() + _OFFSETS.get(_name(tensor), _OFFSET)


def _below(tensor: Tensor, *_: object) -> Tensor:
    """Values far below zero.

    A maximum that starts at zero, or at some large negative number, stays there.
    """
    return tensor.double() - _DEPTHS.get(_name(tensor), _DEPTH)


def _opposed(tensor: Tensor, _: Generator, place: int) -> Tensor:
    """Inputs in turn far below and far above zero, so that sums of products are far below it."""
    return tensor.double() + (_APART if place % 2 else -_APART)


def _rows(tensor: Tensor, *_: object) -> Tensor:
    """Rows in turn far below and far above zero: exposes one row's figure used for another.

    Inputs of one row stay as they are.
    """
    import torch

    rows = math.prod(tensor.shape[:-1])
    if rows < 2 or not tensor.numel():
        return tensor
    above = torch.arange(rows, device=tensor.device).view(*tensor.shape[:-1], 1) % 2
    return tensor.double() + (2.0 * above - 1.0) * _DEPTHS.get(_name(tensor), _DEPTH)


def _ordered(tensor: Tensor, *_: object) -> Tensor:
    """Rows that rise and fall in turn, so that the largest values are in one place.

    Computed without doubles, because sorting also makes 8-byte indices.
    """
    if not tensor.numel() or not tensor.dim():
        return tensor
    return _in_turn(tensor.contiguous().sort(dim=-1).values)


def _ordered_in_steps(tensor: Tensor, *_: object) -> Tensor:
    """As ``_ordered``, but of every 64th value, repeated: sorting takes longer than all else."""
    columns = tensor.shape[-1]
    step = max(1, min(_STEP, columns // _LEAST_STEPS))
    few = tensor[..., ::step].sort(dim=-1).values
    return _in_turn(few.repeat_interleave(step, dim=-1)[..., :columns].contiguous())


def _in_turn(rising: Tensor) -> Tensor:
    """The rows, with every second one reversed."""
    falling = rising.view(-1, rising.shape[-1])[1::2]
    falling.copy_(falling.flip(-1))
    return rising


def _sparse(tensor: Tensor, generator: Generator, _: int) -> Tensor:
    """Half of the elements are zero: exposes kernels that take a zero for a missing element."""
    import torch

    kept = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) >= _SPARSE_SHARE
    return tensor.double() * kept.to(tensor.device)


def _non_finite(tensor: Tensor, generator: Generator, _: int) -> Tensor:
    """One NaN and one infinity of each sign, in distinct elements, as far as there are enough."""
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
MEANINGS: Mapping[str, str] = {
    "scaled_up": f"values {_SCALE:g} times larger",
    "scaled_down": f"values {_SCALE:g} times smaller",
    "positive": "no value below zero",
    "negative": "no value above zero",
    "zeros": "all values zero",
    "spikes": f"one value in a hundred {_SPIKE:g} times larger",
    "constant": "all values equal",
    "offset": "values far above zero, close together",
    "denormal": "values below the smallest normal number",
    "below": "values far below zero",
    "opposed": "inputs in turn far below and far above zero",
    "rows": "rows in turn far below and far above zero",
    "ordered": "rows that rise and fall in turn",
    "sparse": "half of the values zero",
    "non_finite": "NaN and infinities among the values",
}
"""What people read of each change."""
_FOR_LARGE: Mapping[Change, Change] = {_ordered: _ordered_in_steps}
ON_REQUEST: Mapping[str, Change] = {"non_finite": _non_finite}
