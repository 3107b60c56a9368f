"""Converts tensors to other precisions, and compares results across them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Generator, Tensor

from truth.plain_tensors import unseen

Tensors = Mapping[str, Tensor]
SLICE = 1 << 24
"""The most elements of a temporary tensor of doubles; larger ones would fill a device."""

_TF32_STEP = 2.0**-11
"""How far TF32 rounds a number at most, as a share of it."""


def slices(count: int, device: torch.device) -> Iterator[slice]:
    """Where ``count`` elements are divided into slices.

    Only the first one on the meta device: all take as much memory.
    """
    for first in range(0, min(count, SLICE) if device.type == "meta" else count, SLICE):
        yield slice(first, min(count, first + SLICE))


def multiply_matrices() -> None:
    """Have this process compute convolutions on a device as products of matrices, for good.

    The vendors' libraries for convolutions have no good kernels for doubles: on an H200 transposed
    ones took 2 to 12 times as long. One sample's columns are in memory at a time. Nor are single
    ones rounded to TF32 then. Runners have processes of their own.
    """
    torch._C._set_cudnn_enabled(False)  # noqa: SLF001, FBT003 - a task may forbid the public one


def upcast(tensors: Tensors) -> dict[str, Tensor]:
    """The tensors, floating-point ones in double precision; others, and doubles, as they are."""
    with unseen():
        return {name: _upcast(tensor) for name, tensor in tensors.items()}


def own_doubles(tensors: Tensors) -> dict[str, Tensor]:
    """Copies of the tensors, floating-point ones in double precision."""
    doubles = upcast(tensors)
    with unseen():
        return {n: t.clone() if t is tensors[n] else t for n, t in doubles.items()}


def _upcast(tensor: Tensor) -> Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor


def is_coarser(found: torch.dtype, wanted: torch.dtype) -> bool:
    """Whether both are floating-point dtypes and ``found`` has larger steps."""
    both = found.is_floating_point and wanted.is_floating_point
    return both and torch.finfo(found).eps > torch.finfo(wanted).eps


def single(tensor: Tensor) -> Tensor:
    """A copy in the precision that kernels compute in."""
    if not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return tensor.clone()
    return tensor.to(torch.float32, copy=True)


def move_farther(moved: Tensor, other: Tensor, value: Tensor) -> None:
    """Raise ``moved``, contiguous doubles, to the finite distances between two results.

    Works in slices, so that temporaries stay small.
    """
    most, others, values = moved.view(-1), other.reshape(-1), value.reshape(-1)
    for of in slices(len(most), most.device):
        far = (others[of].double() - values[of].double()).abs_()
        part = most[of]
        torch.maximum(part, far.nan_to_num_(nan=0.0, posinf=0.0), out=part)


def nudged(
    tensor: Tensor, generator: Generator, *, tf32: bool = False, back: bool = False
) -> Tensor:
    """A copy with each element one rounding up or down, in the precision that kernels compute in.

    With ``tf32``, float32 moves by as much as that rounds. With ``back``, each element moves the
    other way. Works in slices, so that temporaries stay small.
    """
    if not tensor.is_floating_point():
        return tensor.clone()
    computed = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    limits = torch.finfo(computed)
    step = _TF32_STEP if tf32 and tensor.dtype == torch.float32 else limits.eps
    one = -1.0 if back else 1.0
    moved = tensor.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    for exact in torch.split(moved.view(-1), SLICE):
        up = torch.randint(0, 2, exact.shape, generator=generator).double() * 2.0 - 1.0
        exact.add_(one * up * (exact.abs() * step + limits.tiny))
    return moved
