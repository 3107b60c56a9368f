"""Makes tensors claim to be on a GPU, beside a benchmark's kernel on a platform without one.

Kernels ask for it before they launch; on ``cpu`` Triton's interpreter runs the launches. Tensors
that are asked for on ``cuda`` are made where the others are. Where there is a GPU, nothing changes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

_MAKERS = (
    "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones", "ones_like",
    "rand", "rand_like", "randint", "randn", "randn_like", "randperm", "tensor", "zeros",
    "zeros_like",
)  # fmt: skip
_METHODS = ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "to")

_PROPERTIES: Any = SimpleNamespace(name="cpu", multi_processor_count=4, major=9, minor=0)


def _nowhere(*_: Any) -> contextlib.nullcontext[None]:
    """A block in which another device is the current one."""
    return contextlib.nullcontext()


def triton_type(name: str) -> Any:
    """One of Triton's element types, as an argument of a launch."""
    import triton.language

    return triton.language.dtype(name)


def _here(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with ``cpu`` for ``cuda``."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        args = tuple("cpu" if _is_cuda(value) else value for value in args)
        return function(*args, **{n: "cpu" if _is_cuda(v) else v for n, v in kwargs.items()})

    return called


def _is_cuda(value: Any) -> bool:
    return isinstance(value, str | torch.device) and str(value).startswith("cuda")


if not torch.cuda.is_available():
    for _owner, _names in ((torch, _MAKERS), (torch.Tensor, _METHODS)):
        for _name in _names:
            setattr(_owner, _name, _here(getattr(_owner, _name)))
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]
    torch.Tensor.is_cuda = property(lambda _: True)  # type: ignore[assignment]
    torch.cuda.device = torch.cuda.device_of = _nowhere  # type: ignore[assignment, misc]
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.get_device_properties = lambda *_: _PROPERTIES
