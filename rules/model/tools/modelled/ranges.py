"""How values are distributed: quantiles and moments, from which others can be drawn. No data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from modelled.graph import Graph
from modelled.measuring import bound, run
from modelled.parts import Part
from modelled.units import Unit
from modelled.user_model import UserModel

SHARES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
_MOST = 1 << 16
_DIGITS = 4


def recorded(graph: Graph, model: UserModel, units: Sequence[Unit]) -> dict[str, list[Any]]:
    """By unit, the distribution of each of its inputs over all its calls in one run."""

    def plain(_: Node, call: Callable[[], Any]) -> Any:
        return call()

    values = run(graph, bound(graph, model, model.arguments), plain)
    return {
        unit.name: [
            distribution([_tensor(values, part, place) for part in unit.parts])
            for place in range(len(unit.function.arguments))
        ]
        for unit in units
    }


def _tensor(values: dict[Node, Any], part: Part, place: int) -> Tensor:
    tensor = values[part.inputs[place]]
    assert isinstance(tensor, Tensor)
    return tensor


def distribution(tensors: Sequence[Tensor]) -> dict[str, Any]:
    """What is recorded of tensors that one input was.

    ``{quantiles, mean, std}`` of numbers, ``{low, high}`` of integers, ``{share}`` of truth values.
    """
    sampled = torch.cat([_sampled(tensor.detach().cpu().flatten()) for tensor in tensors])
    if sampled.dtype is torch.bool:
        return {"share": _short(sampled.double().mean().item())}
    if not sampled.is_floating_point():
        ends = [(int(t.min()), int(t.max())) for t in tensors if t.numel()]
        return {"low": min((e[0] for e in ends), default=0), "high": max(e[1] for e in ends)}
    numbers = sampled.double()
    numbers = numbers[numbers.isfinite()]
    if not len(numbers):
        numbers = torch.zeros(1, dtype=torch.float64)
    found = torch.quantile(numbers, torch.tensor(SHARES, dtype=torch.float64))
    return {
        "quantiles": [_short(value) for value in found.tolist()],
        "mean": _short(numbers.mean().item()),
        "std": _short(numbers.std(correction=0).item()),
    }


def _sampled(flat: Tensor) -> Tensor:
    """Elements at even distances, at most as many as quantiles need."""
    return flat[:: max(1, len(flat) // _MOST)]


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
