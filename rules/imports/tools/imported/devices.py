"""A benchmark's code that names a GPU, on another device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

_PLAIN = torch.Generator
UNWRITTEN = 1e30
"""What a kernel's memory holds first where it is learned what it computes, or its dtype's most.

A script's own is zero: where neither writes anything, they differ each time, not by chance.
"""

EMPTY = (
    *("empty", "empty_like", "empty_permuted", "empty_strided"),
    *("new_empty", "new_empty_strided"),
)
"""The functions that return unwritten memory."""

_NAMING = {"to", "cuda", "cpu"}
"""The functions that name a device without a keyword."""


@contextlib.contextmanager
def instead_of_cuda(device: str) -> Iterator[None]:
    """Runs on ``device`` what the code asks of ``cuda``; no change if that is a GPU."""
    if device.startswith("cuda"):
        yield
        return
    with mock.patch.object(torch, "Generator", _Generator), _Instead(device):
        yield


class FilledMemory(TorchFunctionMode):
    """A context in which unwritten memory is zero, or all of another value.

    So equal draws are equal, and what was never written is the same each time.
    """

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self._value = value

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call, with the value instead of undefined ones."""
        del types
        result = func(*args, **(kwargs or {}))
        new = getattr(func, "__name__", "") in EMPTY and (kwargs or {}).get("out") is None
        if new and isinstance(result, torch.Tensor):
            _fill(result, self._value)
        return result


def _fill(tensor: torch.Tensor, value: float) -> None:
    """Fill a tensor with a value, or the largest that its dtype has; not one that has none."""
    with contextlib.suppress(RuntimeError, TypeError), torch.no_grad():  # packed or sparse ones
        kind = tensor.dtype
        if kind.is_floating_point or kind.is_complex:
            value = min(value, torch.finfo(kind).max)
        elif kind is not torch.bool:
            value = min(int(value), torch.iinfo(kind).max)
        tensor.fill_(value)


class _Generator(torch.Generator):
    """What makes generators: a class, as code may name it in annotations."""

    def __new__(cls, device: Any = "cpu") -> torch.Generator:  # type: ignore[misc]
        """A plain generator."""
        return _PLAIN("cpu" if _is_cuda(device) else device)


class _Instead(TorchFunctionMode):
    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call with another device; without data, no generator is needed."""
        del types
        name = getattr(func, "__name__", "")
        if not kwargs and name not in _NAMING:  # most calls: some scripts make a million
            return func(*args)
        keywords = dict(kwargs or {})
        if _is_cuda(keywords.get("device")) or type(keywords.get("device")) is int:
            keywords["device"] = self._device
        if self._device == "meta":
            keywords.pop("generator", None)
        if name == "to":
            args = tuple(self._device if _is_cuda(value) else value for value in args)
        if name == "cuda" or (name == "cpu" and self._device == "meta"):
            return args[0]
        return func(*args, **keywords)


def _is_cuda(value: Any) -> bool:
    return isinstance(value, str | torch.device) and str(value).startswith("cuda")
