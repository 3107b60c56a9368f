"""Makes a task's tensors fit for the judge: dense, with values, and the judge's own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_MOST_NAMES = 8
unseen = torch._C.DisableTorchFunction  # noqa: SLF001 - its public twin leaves modes on
"""A context that hides function calls from PyTorch's modes.

PyTorch's default device is a mode. It costs a microsecond for each function call and each tensor
attribute. In this context new tensors need an explicit device.
"""


def complaint(value: Any) -> str:
    """Why a value is not a plain tensor, worded to follow 'returned as'; empty if it is one."""
    kind = type(value)
    if not issubclass(kind, Tensor):
        return f"{kind.__name__}, not a tensor"
    if kind not in {Tensor, torch.nn.Parameter}:
        return f"{kind.__name__}: return a plain torch.Tensor"
    unreal = value.is_meta and torch.get_default_device().type != "meta"  # there, memory is counted
    with unseen():
        layout = str(value.layout).rpartition(".")[2]
        strided = value.layout is torch.strided
        problems = {
            "a nested tensor: return torch.nested.to_padded_tensor() of it": value.is_nested,
            f"a tensor of layout {layout}: return its to_dense()": not strided,
            "a quantised tensor: return its dequantize()": value.is_quantized,
            "a tensor on device meta, which has no values: make it on another device": unreal,
        }
        said = next((words for words, found in problems.items() if found), "")
        if not said and _is_without_memory(value):
            return "a tensor whose memory was freed or is too small: return one that has its own"
        return said


def _is_without_memory(tensor: Tensor) -> bool:
    """Whether some elements lie beyond the end of its memory; reading them ends the process."""
    if tensor.is_meta or not tensor.numel() or tensor._is_zerotensor():  # noqa: SLF001
        return False
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((extent - 1) * step for extent, step in steps)
    try:
        held = tensor.untyped_storage().nbytes()
    except (RuntimeError, NotImplementedError):
        return False  # a special view of PyTorch's; reading it reports that
    return (last + 1) * tensor.element_size() > held


def owned(tensor: Tensor) -> Tensor:
    """A contiguous copy of a tensor, which the task's code cannot change later.

    It is where tensors are made by default, as the judge computes there; a task's code may have
    computed on the CPU, with NumPy for instance. What is on a device already is not copied: the
    memory for a copy may be missing.
    """
    here = torch.get_default_device()
    with unseen():
        plain = tensor.detach().resolve_conj().resolve_neg()
        if plain.device.type == "cpu" or plain.is_inference():
            return plain.to(here, copy=True, memory_format=torch.contiguous_format)
        return plain


def entries(made: Any) -> Any:
    """The entries of a dict of any class as a plain dict; any other value unchanged."""
    return dict(dict.items(made)) if isinstance(made, dict) else made


def names(made: dict[Any, Any]) -> str:
    """The keys of a dict for people: ``['x', 'y']``, the first few of many."""
    shown = [repr(k) if type(k) is str else type(k).__name__ for k in made][:_MOST_NAMES]
    more = f", ... {len(made)} in all" if len(made) > _MOST_NAMES else ""
    return f"[{', '.join(sorted(shown))}{more}]"
