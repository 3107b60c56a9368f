"""The dtypes of task signatures: names, codes on the wire, sizes, and poison.

Poison is the content of an output before a call: for floats a NaN with a payload that arithmetic
does not produce, for integers a pattern. It shows which elements a candidate left unwritten.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dtype:
    """One dtype.

    Attributes:
        code: its number in the control block.
        size: bytes per element.
        torch_name: its attribute of the ``torch`` module.
        bits_name: the integer dtype of the same width, for views of the bits.
        poison: the bits of a poisoned element, as a value of that integer dtype.
        given_as: the dtype that a call gets instead, if the judge stores bytes.
    """

    code: int
    size: int
    torch_name: str
    bits_name: str
    poison: int
    given_as: str = ""


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
    "i16": Dtype(9, 2, "int16", "int16", -0x5A5B),
    "u16": Dtype(10, 2, "uint16", "int16", -0x5A5B),
    "c64": Dtype(11, 8, "complex64", "int64", 0x7FC5_EED5_7FC5_EED5),
    "c128": Dtype(12, 16, "complex128", "int64", 0x7FF8_5EED_0BAD_F00D),
    "f8e4m3": Dtype(13, 1, "float8_e4m3fn", "uint8", 0x7F),
    "f8e5m2": Dtype(14, 1, "float8_e5m2", "uint8", 0x7D),
    "f8e4m3fnuz": Dtype(15, 1, "float8_e4m3fnuz", "uint8", 0x80),
    "f8e5m2fnuz": Dtype(16, 1, "float8_e5m2fnuz", "uint8", 0x80),
    "f4x2": Dtype(17, 1, "uint8", "uint8", 0xA5, "float4_e2m1fn_x2"),
}
ELEMENT = "T"
"""Stands for the config's dtype in a signature."""

PLAIN = ("f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u8", "bool")
"""The dtypes that every language and the native runner support."""

ONLY_GIVEN = ("c64", "c128", "f4x2")
"""Dtypes that can be passed to a call but not compared."""

FLOATING = ("f64", "f32", "f16", "bf16")
"""The dtypes that a config may have."""

INTEGERS = ("i64", "i32", "i8", "u8")
SEEDS = ("i64", "i32")
STEPPED = (*INTEGERS, "f16", "bf16")
"""Dtypes whose neighbouring values are far enough apart to count errors in steps."""

BY_CODE = {dtype.code: dtype for dtype in DTYPES.values()}
