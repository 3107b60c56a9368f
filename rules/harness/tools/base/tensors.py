"""The PyTorch equivalents of signature terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from terms.dtypes import DTYPES

if TYPE_CHECKING:
    import torch


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype of a name such as ``f16``."""
    import torch

    dtype: torch.dtype = getattr(torch, DTYPES[name].torch_name)
    return dtype


def poison_mask(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """The elements that still hold poison: a bool tensor of the same shape."""
    import torch

    dtype = DTYPES[name]
    return tensor.view(getattr(torch, dtype.bits_name)) == dtype.poison
