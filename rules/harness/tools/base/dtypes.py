"""The dtypes of task signatures: names, codes on the wire, sizes, and poison.

Poison is what an output holds before a call: a NaN with a payload that arithmetic does
not produce, and for integers a pattern. It shows what a candidate left unwritten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Dtype:
    """One dtype.

    Attributes:
        code: its number in the control block.
        size: bytes per element.
        torch_name: its attribute of the ``torch`` module.
        bits_name: the integer dtype of the same width, for views of the bits.
        poison: the bits of a poisoned element, as a value of that integer dtype.
    """

    code: int
    size: int
    torch_name: str
    bits_name: str
    poison: int


DTYPES = {
    "f64": Dtype(0, 8, "float64", "int64", 0x7FF8_5EED_0BAD_F00D),
    "f32": Dtype(1, 4, "float32", "int32", 0x7FC5_EED5),
    "f16": Dtype(2, 2, "float16", "int16", 0x7E5D),
    "bf16": Dtype(3, 2, "bfloat16", "int16", 0x7FDE),
    "i64": Dtype(4, 8, "int64", "int64", -0x5A5A_5A5A_5A5A_5A5B),
    "i32": Dtype(5, 4, "int32", "int32", -0x5A5A_5A5B),
    "i8": Dtype(6, 1, "int8", "int8", -0x5B),
    "u8": Dtype(7, 1, "uint8", "uint8", 0xA5),
    "bool": Dtype(8, 1, "bool", "uint8", 0xA5),
}
BY_CODE = {dtype.code: dtype for dtype in DTYPES.values()}


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype of a name such as ``f16``."""
    import torch

    dtype: torch.dtype = getattr(torch, DTYPES[name].torch_name)
    return dtype


def poison_mask(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """Where the elements still have the bits of poison: a bool tensor of the same shape."""
    import torch

    dtype = DTYPES[name]
    return tensor.view(getattr(torch, dtype.bits_name)) == dtype.poison
