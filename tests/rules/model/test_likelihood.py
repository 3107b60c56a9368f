"""How far logits are from the true ones, and from where on they are too far."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "rules/model/tools"), str(ROOT / "rules/imports/tools")]

from modelled.likelihood import Likeness, likeness

OWN = Likeness(1000, 1e-12, 1e-11, 1.0)


def true() -> Tensor:
    return torch.randn(4, 50, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_equal_logits_and_equally_shifted_ones_are_the_same() -> None:
    found = likeness([true() + 3.0], [true()])

    assert found.positions == 200
    assert found.divergence == pytest.approx(0, abs=1e-12)
    assert (found.agreement, found.wrong(OWN)) == (1.0, "")


def test_the_divergence_is_that_of_the_definition() -> None:
    p, q = torch.tensor([0.5, 0.5]).double(), torch.tensor([0.25, 0.75]).double()
    found = likeness([q.log()[None]], [p.log()[None]])

    assert found.divergence == pytest.approx(float((p * (p / q).log()).sum()))
    assert found.worst == found.divergence


def test_single_precision_passes_and_a_slightly_wrong_scale_does_not() -> None:
    rounded = likeness([true().float().double()], [true()])
    scaled = likeness([true() * 1.01], [true()])

    assert rounded.wrong(OWN) == ""
    assert scaled.agreement == 1.0
    assert "nats, where 1e-06 are allowed" in scaled.wrong(OWN)


def test_logits_that_are_no_numbers_are_wrong_and_still_json() -> None:
    broken = true()
    broken[2, 7, 1] = float("nan")
    found = likeness([broken], [true()])

    assert "inf nats" in found.wrong(OWN)
    assert found.to_json()["divergence"] is None


def test_another_likeliest_token_is_wrong_however_near() -> None:
    flat = torch.zeros(1000, 2, dtype=torch.float64)
    flat[:, 0] = 1e-5
    found = likeness([flat.flip(-1)], [flat])

    assert found.divergence < 1e-6
    assert "agrees in 0.00%, expected 99.90%" in found.wrong(OWN)


def test_a_model_is_no_more_exact_than_its_own_code() -> None:
    rough = Likeness(1000, 1e-4, 1e-3, 0.97)

    assert Likeness(1000, 9e-4, 1e-2, 0.9695).wrong(rough) == ""
    assert Likeness(1000, 1.1e-3, 1e-2, 0.97).wrong(rough)
    assert Likeness(1000, 1e-4, 1e-3, 0.968).wrong(rough)
