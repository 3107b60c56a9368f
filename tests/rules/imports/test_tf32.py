"""Which tasks multiply single precision as TF32, where a device does by default."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import pytest
import torch
from imported.tf32 import Watch, has_dot, takes_single
from torch import nn

IMAGE = torch.zeros(1, 2, 8, 8)
ROWS = torch.zeros(3, 4)


@pytest.mark.parametrize(
    ("layer", "given", "multiplies"),
    [
        (nn.Conv2d(2, 3, 3), IMAGE, True),
        (nn.ConvTranspose2d(2, 3, 3), IMAGE, True),
        (nn.Conv1d(2, 3, 3), ROWS.repeat(2, 2)[:2], True),
        (nn.LSTM(4, 4), ROWS, True),
        (nn.GRU(4, 4), ROWS, True),
        (nn.RNN(4, 4), ROWS, True),
        (nn.Linear(4, 4), ROWS, False),
        (nn.MaxPool2d(2), IMAGE, False),
        (nn.BatchNorm2d(2), IMAGE, False),
    ],
)
def test_convolutions_and_recurrent_layers_do(layer, given, multiplies):
    with Watch() as watch, torch.no_grad():
        layer(given)
    assert watch.multiplied is multiplies


@pytest.mark.parametrize(
    ("text", "multiplies"),
    [
        (b"acc += tl.dot(a, b)", True),
        (b"acc = triton.language.dot(a, b, acc)", True),
        (b"acc += tl.dot(a, b, allow_tf32=False)", False),
        (b'acc += tl.dot(a, b, input_precision="ieee")', False),
        (b"acc += torch.dot(a, b)", False),
        (b"acc += tl.sum(a * b)", False),
    ],
)
def test_a_product_in_triton_does_unless_it_says_otherwise(text, multiplies):
    assert has_dot(text) is multiplies


@pytest.mark.parametrize(
    ("attrs", "single"),
    [
        ({"inputs": {"x": "T[n]"}, "dtypes": ["f32"]}, True),
        ({"inputs": {"x": "T[n]"}, "dtypes": ["f16"]}, False),
        ({"inputs": {"x": "f16[n]", "y": "f32[n]"}, "dtypes": ["f16"]}, True),
        ({"inputs": {"x": "f16[n]"}, "state": {"w": "T[n]"}, "dtypes": ["f32"]}, True),
        ({"inputs": {"x": "f16[n]"}, "dtypes": ["f32"]}, False),
    ],
)
def test_half_precision_has_no_more_digits_than_tf32(attrs, single):
    assert takes_single(attrs) is single
