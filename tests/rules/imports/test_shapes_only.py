"""A module is run for its shapes alone, as fast as these are known, and fails where it would."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import pytest
import torch
from imported import shapes_only
from imported.shapes_only import ShapesOnly
from torch import nn
from torch.nn import functional, init

LAYERS = {
    "normalised": lambda: (nn.BatchNorm2d(3), (2, 3, 4, 5)),
    "normalised, of one axis": lambda: (nn.BatchNorm1d(3), (2, 3)),
    "normalised, without weights": lambda: (nn.BatchNorm3d(3, affine=False), (2, 3, 1, 1, 1)),
    "normalised by its batch": lambda: (nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 4, 4)),
    "normalised as it was trained": lambda: (nn.BatchNorm2d(3).eval(), (1, 3, 1, 1)),
    "linear": lambda: (nn.Linear(5, 7), (2, 3, 5)),
    "linear, without a bias": lambda: (nn.Linear(5, 7, bias=False), (5,)),
    "linear, of nothing": lambda: (nn.Linear(5, 7), (0, 5)),
    "clamped": lambda: (nn.ReLU6(), (2, 3)),
    "clamped in place": lambda: (nn.Hardtanh(-2.0, 2.0, inplace=True), (2, 3)),
}
FAILING = {
    "other channels": lambda: (nn.BatchNorm2d(3), (2, 4, 4, 5)),
    "one value a channel": lambda: (nn.BatchNorm2d(3), (1, 3, 1, 1)),
    "no channels": lambda: (nn.BatchNorm1d(3), (3,)),
    "other features": lambda: (nn.Linear(5, 7), (2, 6)),
    "a number": lambda: (nn.Linear(5, 7), ()),
}


def ran(layer, data, *, quickly):
    if not quickly:
        return layer(data)
    with ShapesOnly():
        return layer(data)


@pytest.mark.parametrize("made", LAYERS.values(), ids=LAYERS)
def test_a_layer_has_the_shape_that_pytorch_gives_it(made):
    with torch.device("meta"):
        layer, shape = made()
        turned = torch.zeros(shape[::-1]).permute(*range(len(shape))[::-1])
        for data in (torch.zeros(shape), turned):
            wanted, found = (ran(layer, data.clone(), quickly=q) for q in (False, True))
            assert found.is_meta
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
            assert found.stride() == wanted.stride()


@pytest.mark.parametrize("made", LAYERS.values(), ids=LAYERS)
def test_a_common_layer_takes_no_formula(monkeypatch, made):
    known, results = shapes_only._known, []

    def noted(*given):
        results.append(known(*given))
        return results[-1]

    monkeypatch.setattr(shapes_only, "_known", noted)
    with torch.device("meta"):
        layer, shape = made()
        ran(layer, torch.zeros(shape), quickly=True)

    assert any(result is not None for result in results)


@pytest.mark.parametrize("made", FAILING.values(), ids=FAILING)
def test_what_pytorch_refuses_is_refused(made):
    with torch.device("meta"):
        layer, shape = made()
        for quickly in (False, True):
            with pytest.raises((RuntimeError, ValueError)):
                ran(layer, torch.zeros(shape), quickly=quickly)


@pytest.mark.parametrize("layer", [nn.BatchNorm2d(3), nn.Linear(3, 2)])
def test_data_of_other_types_or_on_other_devices_is_left_to_pytorch(layer):
    data = torch.ones(2, 3, 4, 3)
    found = ran(layer, data, quickly=True)

    assert not found.is_meta
    assert torch.equal(found, layer(data))
    whole = torch.zeros(2, 3, 4, 3, dtype=torch.int64, device="meta")
    first, again = (end_of(layer.to("meta"), whole, quickly=quickly) for quickly in (False, True))
    assert first == again


def end_of(layer, data, *, quickly):
    try:
        found = ran(layer, data, quickly=quickly)
    except RuntimeError as error:
        return str(error)
    return found.shape, found.dtype


def test_arguments_may_have_names():
    with torch.device("meta"), ShapesOnly():
        data, weight = torch.zeros(2, 5), torch.zeros(7, 5)
        assert functional.linear(input=data, weight=weight).shape == (2, 7)
        mean, variance = torch.zeros(5), torch.zeros(5)
        found = functional.batch_norm(data, running_mean=mean, running_var=variance)
        assert found.shape == (2, 5)


@pytest.mark.parametrize(
    "draw", [init.kaiming_uniform_, init.kaiming_normal_, init.xavier_uniform_, init.orthogonal_]
)
def test_weights_of_any_values_are_not_drawn(draw):
    weight = torch.zeros(4, 3, device="meta")
    with ShapesOnly():
        assert draw(weight) is weight
        with pytest.raises(ValueError, match="2"):
            draw(torch.zeros(3, device="meta"))
        drawn = draw(torch.zeros(4, 3))
    assert drawn.abs().sum() > 0
