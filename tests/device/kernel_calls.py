"""Kernels of this repository as functions of the process that times them.

They are our own: nothing keeps them from the rest of the process.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor


def loaded(path: Path) -> ModuleType:
    """The module in a file. Nothing else imports it by a name."""
    spec = importlib.util.spec_from_file_location(f"kernel_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scratch_memory(
    library: ctypes.CDLL, name: str, device: str
) -> Callable[..., tuple[Tensor, ...]]:
    """What calls of such dims are given besides: memory, made once; none where none is asked for.

    ``name`` is the function that says how many bytes.
    """
    if not hasattr(library, name):
        return lambda *_: ()
    size = getattr(library, name)
    size.restype = ctypes.c_size_t

    @cache
    def made(*dims: int) -> tuple[Tensor, ...]:
        wanted = size(*map(ctypes.c_int64, dims))
        return (torch.empty(max(1, wanted), dtype=torch.uint8, device=device),)

    return made


def argument(value: Tensor | float) -> Any:
    """What a native entry is given: a pointer, a float, or an int64."""
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int64(value)


def library_call(
    path: Path,
    entry: str,
    dtype: str,
    scalars: Mapping[str, float],
    dims: Mapping[str, int],
    device: str,
) -> Callable[[Sequence[Tensor]], None]:
    """What calls the entry of a compiled library with tensors, the inputs first.

    Raises OSError if the library cannot be loaded. A call raises RuntimeError if it fails.
    """
    library = ctypes.CDLL(str(path))
    symbol = f"{entry}_{dtype}" if hasattr(library, f"{entry}_{dtype}") else entry
    function = getattr(library, symbol)
    scratch = scratch_memory(library, f"{symbol}_workspace", device)(*dims.values())

    def call(tensors: Sequence[Tensor]) -> None:
        stream = torch.cuda.current_stream().cuda_stream if device == "cuda" else 0
        given: tuple[Tensor | float, ...] = (
            *tensors,
            *scalars.values(),
            *dims.values(),
            *scratch,
        )
        if error := function(*map(argument, given), ctypes.c_void_p(stream)):
            raise RuntimeError(f"{entry}: hipError_t {error}")

    return call
