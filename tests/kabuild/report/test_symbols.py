"""Kernels' names for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.report.page.symbols import readable


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("swiglu_kernel", "swiglu_kernel"),
        ("_Z4copyPKfPfl", "copy"),
        ("_Z4rowsIfLi256ELb1EEvPKT_PS0_l", "rows<float, 256, true>"),
        ("_ZN19_GLOBAL__N__kernel_9add_partsI6__halfEEvPKfPT_ll", "add_parts<__half>"),
        (
            "_ZN19_GLOBAL__N__kernel_10gemm_tilesI6__halfS1_Li128ELb0EEEvPKT_S4_PT0_NS_5ShapeEl",
            "gemm_tiles<__half, __half, 128, false>",
        ),
        (
            "_ZN19_GLOBAL__N__kernel_6tensor8productsIfLi64EEEvPK6__halfS4_PT_NS_5ShapeEl",
            "tensor::products<float, 64>",
        ),
        (
            "_ZN12_GLOBAL__N_110gemm_tilesIN3hip5SmallINS1_4HalfEEES4_Li64ELb1EEEvPKT_S7_PT0_l",
            "gemm_tiles<hip::Small<hip::Half>, hip::Small<hip::Half>, 64, true>",
        ),
        ("_Z1fIPKdLin3EEvv", "f<double const*, -3>"),
        ("_ZplRK1AS1_", "_ZplRK1AS1_"),
        ("_Z9short", "_Z9short"),
        ("_Z", "_Z"),
        ("_Z1fILb7EEvv", "_Z1fILb7EEvv"),
        ("_Z1fI" + "P" * 5000, "_Z1fI" + "P" * 5000),
    ],
)
def test_names_are_those_of_the_source(symbol: str, name: str) -> None:
    assert readable(symbol) == name


def test_a_name_that_doubles_itself_stays_as_it_is() -> None:
    """Each argument is twice the one before: 2^40 letters, were it written out."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    symbol = "_Z1fI1a" + "".join(f"1bIS{digits[i]}_S{digits[i]}_E" for i in range(36)) + "Evv"
    assert len(readable(symbol)) < 1000


@given(st.text("_ZNSIELPKTfib0123456789a", max_size=60))
def test_whatever_a_candidate_calls_its_kernels(text: str) -> None:
    assert len(readable(f"_Z{text}")) <= 1000
