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
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from base.tensors import poison_mask, torch_dtype
from terms.tolerance import CAP, FACTOR, Bound
from torch import Tensor

from truth.plain_tensors import unseen

_SMALL = 1e-12  # larger root mean squares have squares far from denormal


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


def allowance(expected: Tensor, dtype: str, bound: Bound) -> Tensor:
    """The allowed error of each element, in double precision."""
    kind = torch_dtype(dtype)
    limit = torch.finfo(kind).max if kind.is_floating_point else math.inf
    magnitude = torch.nan_to_num(expected.double().abs(), nan=0.0, posinf=0.0)
    scale = _root_mean_square(magnitude, limit)
    return bound.rtol * magnitude + (bound.atol * scale + _smallest(dtype))


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
    not finite, or would not be: that needs a closer look.
    """
    with unseen():
        if not got.numel():
            return torch.zeros(len(got), device=got.device)
        exact = expected.float()
        flat = per_call(exact)
        scale = torch.linalg.vector_norm(flat, dim=1) / math.sqrt(flat.shape[1])
        finite = torch.where(torch.isfinite(scale) & (scale > _SMALL), scale, torch.nan)
        least = (bound.atol * finite + _smallest(dtype)).reshape(-1, *[1] * (exact.dim() - 1))
        allowed = exact.abs().mul_(bound.rtol).add_(least)
        return per_call((got.float() - exact).abs_().div_(allowed)).amax(1)


def per_call(values: Tensor) -> Tensor:
    """The elements of each call in a row: [calls, elements] of [calls, ...]."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def mismatches(got: Tensor, expected: Tensor) -> Tensor:
    """``excess`` for exact dtypes: 0 where equal, infinite where not."""
    return torch.where(got.to(expected.dtype) == expected, 0.0, torch.inf).double()


def slack(baseline_excess: float, factor: float = FACTOR, cap: float = CAP) -> float:
    """How many allowances a kernel gets, given the baseline's error in allowances.

    A baseline that is infinitely wrong says nothing about the difficulty of the problem.
    """
    if not math.isfinite(baseline_excess):
        return 1.0
    return min(max(1.0, factor * baseline_excess), cap)


def largest(values: Tensor) -> float:
    """The largest element; 0 of an empty tensor."""
    return float(values.max().item()) if values.numel() else 0.0


def worst(
    output: str, got: Tensor, expected: Tensor, over: Tensor, allowed: Tensor
) -> Worst | None:
    """The element with the largest ``over``; None for an empty output."""
    if not over.numel():
        return None
    index = position(int(over.reshape(-1).argmax().item()), over.shape)
    given, exact = float(got[index].item()), float(expected[index].item())
    error = abs(given - exact) if given != exact else 0.0
    return Worst(output, index, exact, given, error, float(allowed[index]), float(over[index]))


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
        return mask & (got.to(expected.dtype) != expected)


def _root_mean_square(magnitude: Tensor, limit: float) -> Tensor:
    """The root mean square of non-negative numbers up to ``limit``; their squares may overflow.

    A scalar tensor that stays on the numbers' device, so the host does not wait for it.
    """
    counted = magnitude <= limit
    kept = torch.where(counted, magnitude, 0.0)
    top = kept.max() if kept.numel() else torch.zeros(())
    mean = (kept / top).square().sum() / counted.sum()
    return torch.where(top > 0, top * mean.sqrt(), 0.0)


def _smallest(dtype: str) -> float:
    """Twice the smallest number that the hardware keeps: half precision keeps denormals."""

    kind = torch_dtype(dtype)
    if not kind.is_floating_point:
        return 0.0
    limits = torch.finfo(kind)
    kept = limits.smallest_normal * limits.eps if dtype == "f16" else limits.smallest_normal
    return 2.0 * kept
