"""Beside a benchmark's kernel on a platform without GPU: tensors say that they are on one.

Kernels ask for it before they launch; on ``cpu`` Triton's interpreter runs the launches. Where
there is a GPU, nothing changes.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import torch

_PROPERTIES: Any = SimpleNamespace(name="cpu", multi_processor_count=4, major=9, minor=0)


def _nowhere(*_: Any) -> contextlib.nullcontext[None]:
    """A block in which another device is the current one."""
    return contextlib.nullcontext()


def triton_type(name: str) -> Any:
    """One of Triton's element types, as an argument of a launch."""
    import triton.language

    return triton.language.dtype(name)


if not torch.cuda.is_available():
    torch.Tensor.is_cuda = property(lambda _: True)  # type: ignore[assignment]
    torch.cuda.device = torch.cuda.device_of = _nowhere  # type: ignore[assignment, misc]
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.get_device_properties = lambda *_: _PROPERTIES
