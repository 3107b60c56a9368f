"""Simulates single precision: rounds each step of a computation at random."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from truth.dispatch import UncompiledMode
from truth.precision import is_coarser

_STEPS = 2.0  # roundings vary in size, since equal ones would cancel in a difference
_EXACT_NAMES = """
    arange eye full full_like new_full new_ones ones ones_like scalar_tensor zeros
    ceil floor round trunc
    kthvalue median mode sort topk
    cat clone constant_pad_nd embedding flip gather index index_select masked_select repeat roll
    scatter.src scatter.value select_scatter slice_scatter stack take tril triu
"""
_EXACT = frozenset(f"aten::{name}" for name in _EXACT_NAMES.split())
"""Operations whose results no program rounds: constants, whole numbers, choices, and copies.

Not ``amax``, ``clamp`` or ``where``: kernels often scale what these choose from, as for ``exp2``.
Nor ``_unsafe_view``, with which PyTorch lays out a matrix anew: what that moves stands for how
kernels add up the matrix.
"""
_EXACT_OF_INTEGERS_NAMES = """
    abs add clamp div.Scalar_mode div.Tensor_mode floor_divide fmod maximum minimum mul neg
    remainder rsub sub where
"""
_EXACT_OF_INTEGERS = frozenset(f"aten::{name}" for name in _EXACT_OF_INTEGERS_NAMES.split())
"""Operations that make integers of integers."""
_CONVERSION = "aten::_to_copy"


class Rounding(UncompiledMode):  # type: ignore[no-untyped-call]  # PyTorch has no types
    """Moves each new tensor of ``dtype`` that PyTorch computes by up to two roundings, up or down.

    What no program rounds stays as it is, as far as the operation tells, so that the number of a
    row is still that row's, and a copy of a value still equal to it: results of ``_EXACT``, those
    of ``_EXACT_OF_INTEGERS`` that are made of integers, and values of a narrower dtype. So do
    views, updates in place, and a result that is a part of a complex one.
    """

    def __init__(self, dtype: torch.dtype, seed: int) -> None:
        super().__init__()
        self._dtype = dtype
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        made = function(*args, **kwargs)
        schema = function._schema  # noqa: SLF001
        if any(result.alias_info is not None for result in schema.returns):
            return made
        name = schema.name
        names = {name, f"{name}.{schema.overload_name}"}
        if names & _EXACT:
            return made
        if name == _CONVERSION and not is_coarser(self._dtype, args[0].dtype):
            return made
        for item in tree_leaves(made):
            if isinstance(item, Tensor) and item.dtype == self._dtype:
                operands = (*args, *kwargs.values())
                exact = _integers(item, operands) if names & _EXACT_OF_INTEGERS else None
                self._move(item, exact)
        return made

    def _move(self, tensor: Tensor, exact: Tensor | None) -> None:
        step = torch.finfo(self._dtype).eps
        generator = self._generators.get(tensor.device)
        if generator is None:
            generator = torch.Generator(tensor.device).manual_seed(self._seed)
            self._generators[tensor.device] = generator
        factor = torch.empty_like(tensor).uniform_(
            -_STEPS * step, _STEPS * step, generator=generator
        )
        if exact is not None:
            factor.masked_fill_(exact, 0.0)
        tensor.mul_(factor.add_(1.0))


def _integers(result: Tensor, operands: tuple[Any, ...]) -> Tensor:
    """Which elements of a result are integers, made of integers, and small enough to be exact."""
    exact = (result == result.trunc()) & (result.abs() < 1.0 / torch.finfo(result.dtype).eps)
    for operand in operands:
        if isinstance(operand, float):
            exact &= operand.is_integer() or math.isinf(operand)
        elif isinstance(operand, Tensor) and operand.is_floating_point():
            exact &= operand == operand.trunc()
    return exact
