"""Runs a reference in double precision, in spite of its own casts."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_NARROW = frozenset({torch.float16, torch.bfloat16, torch.float32})
_CASTS = frozenset({"float", "half", "bfloat16"})
_BITS = frozenset({"view"})
"""What reads the same bits as another type."""


class InDoubles(TorchFunctionMode):
    """Where casts to half and single precision, and new tensors of these types, are doubles.

    References compute in single precision, and round in between as their model does. The exact
    result has no such roundings.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call with doubles instead of narrower types."""
        del types
        name, keywords = getattr(func, "__name__", ""), kwargs or {}
        if name in _CASTS and isinstance(args[0], torch.Tensor):
            return args[0].double()
        if name not in _BITS:
            args = tuple(_wide(value) for value in args)
            keywords = {key: _wide(value) for key, value in keywords.items()}
        return func(*args, **keywords)


def _wide(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value
