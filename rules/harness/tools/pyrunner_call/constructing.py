"""Constructs objects whose weights are handed over, without drawing large ones in vain."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor
from torch.nn import init

LARGE = 1 << 20
"""Elements. Drawing 67 million on one processor takes half a second, in each process."""

_DRAWING = (
    "uniform_",
    "normal_",
    "trunc_normal_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "sparse_",
)


@contextlib.contextmanager
def undrawn() -> Iterator[None]:
    """Let the functions of ``torch.nn.init`` leave large tensors as they are.

    For constructors only: what they draw is replaced by the state, and whatever else depends on
    their random numbers could not agree with the reference anyway.
    """
    known = {name: getattr(init, name) for name in _DRAWING}
    for name, function in known.items():
        setattr(init, name, _sparing(function))
    try:
        yield
    finally:
        for name, function in known.items():
            setattr(init, name, function)


def _sparing(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def drawn(tensor: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        if tensor.numel() >= LARGE:
            return tensor
        return function(tensor, *arguments, **keywords)

    return drawn
