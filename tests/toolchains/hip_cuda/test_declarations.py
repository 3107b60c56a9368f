"""Declarations of dynamic shared memory, as they are rewritten for NVIDIA's processors."""

from __future__ import annotations

import re

import pytest
from cuda_dialect import CUDA
from layout import lay_out
from lexer import lex

POINTER = "float*consts=reinterpret_cast<float*>(hipcuda_dynamic_shared)"


def rewritten(source: str) -> str:
    return re.sub(r"\s+", "", lay_out(CUDA.rewrite(lex(source, "k.hip"), "k.hip"), "k.hip").text)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("void f() { extern __shared__ float s[]; }", f"voidf(){{{POINTER};}}"),
        (
            "void f() { extern __shared__ float s[]; extern __shared__ float s[]; }",
            f"voidf(){{{POINTER};{POINTER};}}",
        ),
        ("extern __shared__ float s[];", "extern__shared__floats[];"),
        ("void f() { extern __shared__ float", "voidf(){extern__shared__float"),
        ("void f() { extern __shared__", "voidf(){extern__shared__"),
        ("void f() { extern __shared__ ; }", "voidf(){extern__shared__;}"),
        (
            "void f() { extern __shared__ extern int x[]; }",
            "voidf(){extern__shared__externintx[];}",
        ),
    ],
)
def test_only_a_whole_declaration_becomes_a_pointer(source: str, result: str) -> None:
    assert rewritten(source) == result


def test_many_that_do_not_end_are_read_once() -> None:
    source = "void f() { " + "extern __shared__ float " * 20_000

    assert rewritten(source) == re.sub(r"\s+", "", source)
