"""Tables on terminals of any width."""

from __future__ import annotations

import pytest

from kabuild.report.table import render_columns

ROWS = [
    ("NAME", "ROLE", "VERSION"),
    ("//a:b", "compiler", "torch 2.13.0, triton 3.6.0"),
    ("//a:long", "python", "3"),
]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (80, "//a:b     compiler  torch 2.13.0, triton 3.6.0"),
        (46, "//a:b     compiler  torch 2.13.0, triton 3.6.0"),
        (45, "//a:b     torch 2.13.0, triton 3.6.0"),
        (30, "//a:b     torch 2.13.0, tri..."),
        (1, "//a:b     torch..."),
    ],
)
def test_columns_go_before_cells_are_cut(width: int, expected: str) -> None:
    lines = render_columns(ROWS, width, spare=(1,), cut=2)

    assert lines[1] == expected
    assert ("ROLE" in lines[0]) is ("compiler" in expected)
    assert width < 18 or max(map(len, lines)) <= width
