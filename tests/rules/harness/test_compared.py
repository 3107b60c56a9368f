"""Outputs that are compared a piece at a time: the same as all at once, in less memory."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="union-attr"

from __future__ import annotations

import math

import pytest
import torch

from perf.oracle_memory import _counted, _Ledger  # isort: skip
from terms.tolerance import BOUNDS  # isort: skip
from truth import compared, comparison, precision, tolerance  # isort: skip
from truth.compared import Compared  # isort: skip
from truth.precision import SLICE  # isort: skip

F32 = BOUNDS["f32"]
PIECE = 16


@pytest.fixture
def in_pieces(monkeypatch):
    """Have outputs of more than ``PIECE`` elements compared in pieces from now on."""

    def begin():
        for module in (compared, precision):
            monkeypatch.setattr(module, "SLICE", PIECE)

    return begin


def outputs():
    """Results that are off by up to a few allowances, and worse in three places."""
    generator = torch.Generator().manual_seed(1)
    expected = torch.randn(7, 9, generator=generator).double() * 3.0
    expected[2, 2], expected[5, 1] = math.inf, math.nan
    got = expected + 3e-4 * torch.randn(7, 9, generator=generator)
    got[4, 0] = 0.0
    return got.float(), expected


def said(pieces):
    """All that a comparison says of the outputs."""
    got, expected = outputs()
    within = Compared.within(got, expected, "f32", F32)
    moved = torch.full(expected.shape, 1e-4).double()
    strict = Compared.strictly(got, expected, comparison.different)
    assert len([*within.pieces()]) == len([*strict.pieces()]) == pieces
    empty = Compared.within(torch.zeros_like(got), expected, "f32", F32)
    return (
        within.largest().item(),
        within.largest_of(moved),
        within.worst("y", 2.0),
        within.share_right(empty),
        strict.worst("y", 1.0),
    )


def test_pieces_say_what_the_whole_does(in_pieces):
    largest, typical, worst, share, strict = said(1)
    assert worst.index == (4, 0)
    assert 0.1 < share < 0.9
    assert strict.excess == math.inf
    in_pieces()
    again = said(4)

    assert again[0] == pytest.approx(largest)
    assert again[1] == pytest.approx(typical)
    assert (again[2].index, again[2].excess) == (worst.index, pytest.approx(worst.excess))
    assert again[3] == share
    assert (again[4].index, again[4].excess) == (strict.index, math.inf)


def test_an_error_in_any_piece_is_the_worst(in_pieces):
    in_pieces()
    for place in (0, PIECE - 1, PIECE, 62):
        expected = torch.ones(63).double()
        got = expected.float()
        got[place] = 2.0
        worst = Compared.within(got, expected, "f32", F32).worst("y", 1.0)
        assert worst.index == (place,)
        assert worst.excess > 1000.0


def test_the_quick_look_in_pieces(in_pieces):
    expected = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(2)).double()
    got = (expected * 1.001).float()
    got[1, 7, 7] += 1.0
    whole = tolerance.quick_excess(got, expected, "f32", F32)
    in_pieces()

    assert torch.allclose(tolerance.quick_excess(got, expected, "f32", F32), whole)
    got[2, 0, 0] = math.nan
    assert tolerance.quick_excess(got, expected, "f32", F32).isnan().tolist() == [
        False,
        False,
        True,
    ]


def test_an_empty_output_has_no_worst_element():
    none = torch.zeros(0, 4)
    found = Compared.within(none, none.double(), "f32", F32)
    assert found.worst("y", 1.0) is None
    assert found.largest().item() == found.largest_of(none.double()) == 0.0


def test_comparing_takes_little_memory_beside_a_large_output():
    """All at once it would take six times as much as the output has in doubles, on a device."""
    count = 16 * SLICE
    doubles = 8 * count
    ledger = _Ledger()
    with _counted(ledger, "meta"):
        expected = torch.zeros(count, dtype=torch.float64)
        got = torch.zeros(count, dtype=torch.float32)
        held = ledger.held
        Compared.within(got, expected, "f32", F32).largest()
        tolerance.quick_excess(got[None], expected[None], "f32", F32)
    assert 0 < ledger.peak - held < doubles
