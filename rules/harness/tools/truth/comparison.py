"""How outputs are compared, also where an elementwise tolerance is meaningless.

=================== ====================================================================
``elementwise``     within the tolerance of its dtype; the default
``exact``           the expected value itself, NaN where NaN is expected
``quantised``       rounded once: at most half a step and a 64th from the value before rounding,
                    if the reference returns that of an integer output; else at most one step
                    of the output's dtype away
``sorted``          elementwise, after both are sorted along the last axis
``topk_indices(x)`` in each row, distinct indices into ``x``'s last axis whose values equal
                    those at the expected indices; any of several equal values may be taken
``sampled(seed)``   independent draws from the distribution ``cdf`` of ``reference.py``; another
                    value of the input ``seed`` gives other draws
=================== ====================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from base import spec
from base.tensors import torch_dtype
from terms.dtypes import DTYPES
from torch import Tensor

from truth.precision import slices
from truth.tolerance import per_call, same_numbers

ELEMENTWISE, EXACT, QUANTISED = "elementwise", "exact", spec.QUANTISED
SORTED, TOPK_INDICES, SAMPLED = "sorted", "topk_indices", "sampled"
KINDS = (ELEMENTWISE, EXACT, QUANTISED, SORTED, TOPK_INDICES, SAMPLED)
ARGUMENTS = {TOPK_INDICES: "x", SAMPLED: "seed"}
"""The kinds that name an input, each with that input's name in examples."""
ROUNDED = 0.5 + 1 / 64
"""How far a quantised integer may be from the value that it is rounded from. Single precision moves
a value of 8 bits by about a ten-thousandth of a step before it is rounded, and half precision by up
to a 16th."""
_SINGLE = 2.0**-22  # of a value, which rounding its operands and itself to singles moves
_TEXT = re.compile(r"(\w+)(?:\(\s*(\w+)\s*\))?")


@dataclass(frozen=True)
class Comparison:
    """One kind of comparison, and the input that it names, if any."""

    kind: str = ELEMENTWISE
    argument: str = ""

    @classmethod
    def parse(cls, text: object) -> Comparison:
        """Parse text such as ``"topk_indices(x)"``. Raises ValueError."""
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None or match[1] not in KINDS:
            raise ValueError(f"unknown comparison {text!r}; known: {', '.join(KINDS)}")
        if (match[1] in ARGUMENTS) is not bool(match[2]):
            example = ARGUMENTS.get(match[1])
            wanted = f"{match[1]}({example})" if example else f"{match[1]} alone"
            raise ValueError(f"no comparison: {text!r}; write {wanted}")
        return cls(match[1], match[2] or "")

    @property
    def tolerant(self) -> bool:
        """Whether tolerances apply, and with them the slack for the baseline's error."""
        return self.kind in {ELEMENTWISE, SORTED}

    @property
    def positional(self) -> bool:
        """Whether an unwritten integer can be distinguished from a correct one."""
        return self.kind in {ELEMENTWISE, EXACT}


def different(got: Tensor, expected: Tensor) -> Tensor:
    """For ``exact``: 0 where equal, infinite where not."""
    return _verdict(_same(got, expected))


def any_different(got: Tensor, expected: Tensor) -> Tensor:
    """The largest of ``different`` in each call's output: [calls], of outputs [calls, ...].

    Works in slices.
    """
    flat, made = per_call(expected), per_call(got)
    places = slices(flat.shape[1], flat.device)
    return _verdict(torch.stack([_same(made[:, of], flat[:, of]).all(1) for of in places]).all(0))


def step_sizes(values: Tensor, dtype: str) -> Tensor:
    """The distance from each of ``values``, singles or doubles, to the next value of ``dtype``."""
    kind = torch_dtype(dtype)
    if not kind.is_floating_point:
        return torch.ones_like(values)
    limits = torch.finfo(kind)
    exponent = torch.frexp(torch.nan_to_num(values).abs().clamp(min=limits.tiny)).exponent - 1
    return torch.ldexp(torch.full_like(values, limits.eps), exponent)


def steps(
    got: Tensor, expected: Tensor, dtype: str, wide: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """For ``quantised``: how many steps of its dtype each element is off, and a step's size.

    Both are of dtype ``wide``. Where ``expected`` is not rounded yet, in singles or doubles for an
    integer, ``ROUNDED`` takes the place of a step, and more for values of so many bits that single
    precision moves them as far; no value has to become an integer if it is NaN.
    """
    kind = torch_dtype(dtype)
    if expected.is_floating_point() and not kind.is_floating_point:
        limits = torch.iinfo(kind)
        exact = expected.to(wide).clamp(limits.min, limits.max)
        allowed = torch.nan_to_num(ROUNDED + exact.abs() * _SINGLE, nan=ROUNDED)
        return torch.nan_to_num((got.to(wide) - exact).abs() / allowed, nan=0.0), allowed
    exact = expected.to(torch_dtype(dtype)).to(wide)
    step = step_sizes(exact, dtype)
    given = got.to(wide)
    off = torch.nan_to_num((given - exact).abs() / step, nan=torch.inf, posinf=torch.inf)
    return torch.where((given == exact) | (given.isnan() & exact.isnan()), 0.0, off), step


def most_steps(got: Tensor, expected: Tensor, dtype: str) -> Tensor:
    """The largest of ``steps`` in each call's output: [calls], of outputs [calls, ...].

    Single precision suffices for dtypes of 8 bits: it has all their values, and the distances of
    neighbours. Works in slices.
    """
    flat, made = per_call(expected), per_call(got)
    wide = torch.float32 if DTYPES[dtype].size == 1 else torch.float64
    found = [
        steps(made[:, of], flat[:, of], dtype, wide)[0].amax(1)
        for of in slices(flat.shape[1], flat.device)
    ]
    return torch.stack(found).amax(0).double()


def in_order(tensor: Tensor) -> Tensor:
    """For ``sorted``: ascending along the last axis, NaN last."""
    return tensor.sort(dim=-1).values if tensor.dim() else tensor


def choices(got: Tensor, expected: Tensor, values: Tensor) -> Tensor:
    """For ``topk_indices``: 0 where an index is a right choice, infinite where not.

    ``values`` has the shape of ``got``, except for the last axis.
    """
    count = values.shape[-1]
    inside = (got >= 0) & (got < count)
    held = values.gather(-1, got.long().clamp(0, count - 1))
    wanted = values.gather(-1, expected.long())
    right = inside & ((held == wanted) | (held.isnan() & wanted.isnan()))
    ordered, places = got.sort(dim=-1, stable=True)
    again = torch.zeros_like(inside)
    again[..., 1:] = ordered[..., 1:] == ordered[..., :-1]
    repeated = torch.zeros_like(inside).scatter(-1, places, again)
    return _verdict(right & ~repeated)


def read(declared: Mapping[str, object], outputs: tuple[str, ...]) -> dict[str, Comparison]:
    """The comparisons of all outputs. Raises ValueError for an unknown output or kind."""
    if unknown := sorted(set(declared) - set(outputs)):
        raise ValueError(f"a comparison for {unknown[0]!r}, which is not an output")
    return {name: Comparison.parse(declared.get(name, ELEMENTWISE)) for name in outputs}


def _same(got: Tensor, expected: Tensor) -> Tensor:
    same = same_numbers(got, expected)
    if got.is_floating_point():
        same |= got.isnan() & expected.isnan()
    return same


def _verdict(right: Tensor) -> Tensor:
    return torch.where(right, 0.0, torch.inf).double()
