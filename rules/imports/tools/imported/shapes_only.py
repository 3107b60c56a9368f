"""Runs a module on the ``meta`` device for its shapes alone, as fast as these can be known.

PyTorch computes many shapes there by going through an operator's formula in Python. That takes
milliseconds; a deep network has hundreds of layers, and is run a hundred times with other sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional, init
from torch.overrides import TorchFunctionMode

_GIVEN = 3  # tensors that a batch normalisation has no default for
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


class ShapesOnly(TorchFunctionMode):
    """Where nothing but shapes is asked for: what would fail on ``meta``, or take long.

    Rates that a constructor spaces evenly are read by it, and single numbers by operators, so these
    have data. PyTorch would go through recurrent layers step by step.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The same shapes as without this."""
        del types
        name, keywords = getattr(func, "__name__", ""), kwargs or {}
        if name == "linspace" or (name == "tensor" and isinstance(args[0], int | float)):
            return func(*args, **{**keywords, "device": "cpu"})
        if name in _RECURRENT and isinstance(args[2], list | tuple) and args[0].is_meta:
            data, state, both = args[0], args[1], args[7]
            last = state[0] if name == "lstm" else state
            results = data.new_empty(*data.shape[:2], last.shape[-1] * (1 + both))
            return results, *(state if name == "lstm" else (state,))
        if getattr(func, "__module__", "") == init.__name__ and name.endswith("_"):
            return _drawn(func, args, keywords)
        found = _known(func, args, keywords)
        return func(*args, **keywords) if found is None else found


def _drawn(func: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """A weight of any values; what such a function would refuse, it does."""
    weight = args[0] if args else keywords.get("tensor")
    fits = isinstance(weight, Tensor) and weight.is_meta and weight.dim() > 1 and weight.numel() > 0
    return weight if fits else func(*args, **keywords)


def _known(func: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Tensor | None:
    """The result of a layer on ``meta``, if it is a common one and its arguments fit together.

    PyTorch hands on what has a default by keyword.
    """
    if func is functional.batch_norm and len(args) == _GIVEN and _is_plain(args, keywords):
        return torch.empty_like(args[0])
    if func is functional.linear and len(args) > 1 and not keywords and _are_factors(*args):
        data, weight = args[:2]
        result: Tensor = data.new_empty(*data.shape[:-1], len(weight))
        return result
    if func is functional.hardtanh and args and args[0].is_meta:
        return torch.empty_like(args[0])
    return None


def _is_plain(args: Sequence[Any], keywords: dict[str, Any]) -> bool:
    """Whether a batch normalisation has a result like its input."""
    data, mean, variance = args
    known = (mean, variance, keywords.get("weight"), keywords.get("bias"))
    several = data.dim() > 1 and data.numel() > data.shape[1]
    measured = mean is not None and variance is not None
    return (
        data.is_meta
        and (several if keywords.get("training") else measured)
        and all(t is None or _is_for(t, data) for t in known)
    )


def _is_for(tensor: Tensor, data: Tensor) -> bool:
    return tensor.shape == data.shape[1:2] and tensor.dtype == data.dtype


def _are_factors(data: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    return (
        data.is_meta
        and data.dim() > 0
        and weight.dim() == 2
        and data.shape[-1] == weight.shape[1]
        and data.dtype == weight.dtype
        and (bias is None or (bias.shape == weight.shape[:1] and bias.dtype == data.dtype))
    )
