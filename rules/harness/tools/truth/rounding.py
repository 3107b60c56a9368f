"""Simulates single precision: rounds each step of a computation at random."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from truth.dispatch import UncompiledMode

_STEPS = 2.0  # roundings vary in size, since equal ones would cancel in a difference


class Rounding(UncompiledMode):  # type: ignore[no-untyped-call]  # PyTorch has no types
    """Moves each new tensor of ``dtype`` that PyTorch computes by up to two roundings, up or down.

    Views and updates in place stay as they are; so does a result that is a part of a complex one.
    """

    def __init__(self, dtype: torch.dtype, seed: int) -> None:
        super().__init__()
        self._dtype = dtype
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        if any(result.alias_info is not None for result in function._schema.returns):  # noqa: SLF001
            return made
        for item in tree_leaves(made):
            if isinstance(item, Tensor) and item.dtype == self._dtype:
                self._move(item)
        return made

    def _move(self, tensor: Tensor) -> None:
        step = torch.finfo(self._dtype).eps
        generator = self._generators.get(tensor.device)
        if generator is None:
            generator = torch.Generator(tensor.device).manual_seed(self._seed)
            self._generators[tensor.device] = generator
        factor = torch.empty_like(tensor).uniform_(
            -_STEPS * step, _STEPS * step, generator=generator
        )
        tensor.mul_(factor.add_(1.0))
