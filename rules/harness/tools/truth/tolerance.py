"""The allowed and the actual distance of an output from the oracle.

An element's *allowance* is ``atol * scale + rtol * |expected|``, where the scale is the root
mean square of the expected output. With a fixed atol instead, a constant would pass for a softmax
over 100,000 columns, whose elements are all smaller, and a product of large matrices would fail
because of cancellation. The *excess* of an element is its error in units of its allowance.

A kernel's error may be up to ``factor`` times the baseline's on the same inputs, and at most
``cap`` allowances: this widening is the *slack*. NaN is right only where the oracle has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from base.tensors import poison_mask, torch_dtype
from terms.tolerance import CAP, FACTOR, Bound
from torch import Tensor

from truth.plain_tensors import unseen
from truth.precision import slices

_VANISHING = 2.0**-100
"""Where all gates of a cell are saturated, gradients are e^-83. A kernel with sigmoid(-x) has that;
one with 1 - sigmoid(x) has 0."""


@dataclass(frozen=True)
class Worst:
    """The worst element of an output, and its allowance.

    ``excess`` is the error in units of the tolerance: above 1 it is too far.
    """

    output: str
    index: tuple[int, ...]
    expected: float
    got: float
    error: float
    tolerance: float
    excess: float


def scale(expected: Tensor, dtype: str) -> Tensor:
    """The root mean square of the elements that ``dtype`` can hold; their squares may overflow.

    A scalar tensor that stays on the elements' device, so the host does not wait for it. Works in
    slices.
    """
    if not expected.numel():
        return torch.zeros(())
    kind = torch_dtype(dtype)
    limit = torch.finfo(kind).max if kind.is_floating_point else math.inf
    flat = expected.reshape(-1)
    pieces = [flat[of] for of in slices(len(flat), flat.device)]
    only = [_counted(pieces[0], limit)] if len(pieces) == 1 else []

    def counted() -> Iterable[tuple[Tensor, Tensor]]:
        return only or (_counted(piece, limit) for piece in pieces)

    top = torch.stack([kept.max() for kept, _ in counted()]).max()
    sums = [((kept / top).square().sum(), held.sum()) for kept, held in counted()]
    squares, held = (torch.stack(found).sum() for found in zip(*sums, strict=True))
    return torch.where(top > 0, top * (squares / held).sqrt(), 0.0)


def allowance(expected: Tensor, dtype: str, bound: Bound, typical: Tensor | None = None) -> Tensor:
    """The allowed error of each element, in double precision.

    ``typical`` is the ``scale`` of the output of which these elements are a part.
    """
    whole = scale(expected, dtype) if typical is None else typical
    return bound.rtol * _magnitude(expected) + (bound.atol * whole + _smallest(dtype))


def excess(got: Tensor, expected: Tensor, dtype: str, allowed: Tensor) -> Tensor:
    """The error of each element in units of ``allowed``; infinite where NaN or sign differ.

    An infinity is right where the oracle has it, and where rounding the oracle's value to the
    dtype overflows within the allowance.
    """
    given, exact = got.double(), expected.double()
    ratio = (given - exact).abs() / allowed
    overflow = torch.copysign(exact.abs() + allowed, exact).to(torch_dtype(dtype)).double()
    same = (given == exact) | (torch.isinf(given) & (given == overflow))
    same |= torch.isnan(given) & torch.isnan(exact)
    ratio = torch.where(torch.isnan(ratio), torch.inf, ratio)
    return torch.where(same, 0.0, ratio)


def quick_excess(got: Tensor, expected: Tensor, dtype: str, bound: Bound) -> Tensor:
    """The largest ``excess`` of each call's output in single precision: [calls], right to 1 %.

    ``got`` and ``expected`` are those of all calls: [calls, ...]. Takes a tenth of the time of
    doubles, with which each step would write more than a device's cache holds. NaN if anything is
    not finite, or would not be in ``dtype``: that needs a closer look. Works in slices.

    The scale alone is a double, as the squares of small numbers are no single ones: what is nearly
    zero everywhere, as behind an activation, needs no closer look.
    """
    with unseen():
        if not got.numel():
            return torch.zeros(len(got), device=got.device)
        flat, made = per_call(expected), per_call(got)
        places = [*slices(flat.shape[1], flat.device)]
        norms = [torch.linalg.vector_norm(flat[:, of], dim=1, dtype=torch.float64) for of in places]
        norm = torch.linalg.vector_norm(torch.stack(norms), dim=0) if len(norms) > 1 else norms[0]
        typical = norm / math.sqrt(flat.shape[1])
        least = (bound.atol * typical + _smallest(dtype)).float().unsqueeze(1)
        found, largest = [], []
        for of in places:
            exact = flat[:, of].float()
            allowed = exact.abs()
            largest.append(allowed.amax(1))
            allowed.mul_(bound.rtol).add_(least)
            found.append((made[:, of].float() - exact).abs_().div_(allowed).amax(1))
        held = torch.stack(largest).amax(0) < torch.finfo(torch_dtype(dtype)).max
        return torch.where(held, torch.stack(found).amax(0), torch.nan)


def per_call(values: Tensor) -> Tensor:
    """The elements of each call in a row: [calls, elements] of [calls, ...]."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def mismatches(got: Tensor, expected: Tensor) -> Tensor:
    """``excess`` for exact dtypes: 0 where equal, infinite where not."""
    return torch.where(same_numbers(got, expected), 0.0, torch.inf).double()


def same_numbers(got: Tensor, expected: Tensor) -> Tensor:
    """Which elements are equal, of floats and doubles, or of any integers.

    A reference may return 32 bits, or truth values, for integers of more: 5 * 2**32 is not 0.
    """
    if got.dtype == expected.dtype:
        return got == expected
    if got.is_floating_point():
        return got.to(expected.dtype) == expected
    return got.long() == expected.long()


def slack(baseline_excess: float, factor: float = FACTOR, cap: float = CAP) -> float:
    """How many allowances a kernel gets, given the baseline's error in allowances.

    A baseline that is infinitely wrong says nothing about the difficulty of the problem.
    """
    if not math.isfinite(baseline_excess):
        return 1.0
    return min(max(1.0, factor * baseline_excess), cap)


def position(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index of the element number ``flat`` of a tensor of ``shape``.

    Replaces ``torch.unravel_index``, whose first call imports SymPy: half a second per judge.
    """
    index = []
    for size in reversed(shape):
        flat, at = divmod(flat, size)
        index.append(at)
    return tuple(reversed(index))


def unwritten(got: Tensor, expected: Tensor, dtype: str) -> Tensor:
    """A bool tensor: which elements still hold poison that the oracle does not expect."""
    with unseen():
        mask = poison_mask(got, dtype)
        if got.is_floating_point():
            # In 8-bit floats, poison is the NaN that arithmetic makes.
            return mask & ~expected.isnan() if got.itemsize == 1 else mask
        return mask & ~same_numbers(got, expected)


def _magnitude(expected: Tensor) -> Tensor:
    return torch.nan_to_num(expected.double().abs(), nan=0.0, posinf=0.0)


def _counted(expected: Tensor, limit: float) -> tuple[Tensor, Tensor]:
    """The magnitudes up to ``limit``, others as 0, and which those are."""
    magnitude = _magnitude(expected)
    held = magnitude <= limit
    return torch.where(held, magnitude, 0.0), held


def _smallest(dtype: str) -> float:
    """What counts as zero, in outputs that have nothing larger.

    Twice the smallest number that the hardware keeps: half precision keeps denormals. For f32 and
    bf16, whose numbers may come from steps in single precision, ``_VANISHING``.
    """
    kind = torch_dtype(dtype)
    if not kind.is_floating_point:
        return 0.0
    limits = torch.finfo(kind)
    kept = limits.smallest_normal * limits.eps if dtype == "f16" else limits.smallest_normal
    return max(2.0 * kept, 0.0 if dtype == "f64" else _VANISHING)
