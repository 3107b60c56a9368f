"""Parts as tasks: their shape spaces, and how their values are distributed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "rules/model/tools"), str(ROOT / "rules/imports/tools")]

from imported.boundary import LeftOutError
from modelled.declaring import part_task, state_of
from modelled.graph import export
from modelled.ranges import distribution
from modelled.spaces import configs_of
from modelled.units import Unit, find_units
from modelled.user_model import UserModel


class Net(nn.Module):
    """Lookups, and two products of different sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 24)
        self.wide, self.narrow = nn.Linear(24, 56), nn.Linear(56, 24)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.narrow(self.wide(self.table(x)))
        return found


@pytest.fixture(scope="module")
def units() -> dict[str, Unit]:
    def draw(seed: int) -> tuple[Tensor, ...]:
        return (torch.randint(40, (10,), generator=torch.Generator().manual_seed(seed)),)

    return {unit.name: unit for unit in find_units(export(UserModel(Net().eval(), draw, "cpu")))}


def test_calls_of_other_sizes_are_configs_of_one_task(units: dict[str, Unit]) -> None:
    configs = configs_of(units["linear"])

    assert configs.shapes["inputs.x"] == ["d0", "d1"]
    assert configs.shapes["outputs.y"] == ["d0", "d2"]
    assert [dict(sizes) for sizes in configs.declared] == [
        {"d0": 10, "d1": 24, "d2": 56},
        {"d0": 10, "d1": 56, "d2": 24},
    ]
    assert configs.calls == [1, 1]
    assert configs.dims["d1"] == "1..56"
    assert configs.flops == "2 * d0 * d1 * d2"


def test_a_table_keeps_its_size_beside_indices(units: dict[str, Unit]) -> None:
    """A smaller table would have indices outside of it."""
    configs = configs_of(units["embedding"])

    assert configs.shapes["inputs.weight"] == ["40", "24"]
    assert [*configs.dims] == ["d2"]


def test_the_brief_is_long_enough_and_the_call_returns_its_results(units: dict[str, Unit]) -> None:
    ranges = [{"quantiles": [0.0] * 11, "mean": 0.0, "std": 0.0}] * 3
    task = part_task(units["linear"], ranges, "net")

    assert task["attrs"]["call"] == "y = linear(x, weight, bias)"
    assert len(task["attrs"]["brief"].split()) >= 10
    assert "def linear(x, weight, bias):" in task["kernel"]


def test_a_part_without_inputs_is_no_task() -> None:
    class Places(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x @ torch.arange(4.0)

    def draw(seed: int) -> tuple[Tensor, ...]:
        return (torch.randn(3, 4, generator=torch.Generator().manual_seed(seed)),)

    unit = find_units(export(UserModel(Places(), draw, "cpu")))[0]
    with pytest.raises(LeftOutError) as caught:
        part_task(unit, [], "places")
    assert caught.value.reason == "NO_INPUTS"


def test_what_is_recorded_of_tensors() -> None:
    values = torch.linspace(-1, 1, 1001)
    assert distribution([values, values])["quantiles"][5] == pytest.approx(0, abs=1e-3)
    assert distribution([values])["std"] == pytest.approx(0.578, abs=1e-2)
    assert distribution([torch.tensor([3, 9]), torch.tensor([4])]) == {"low": 3, "high": 9}
    assert distribution([torch.tensor([True, False, False, False])]) == {"share": 0.25}
    assert distribution([torch.full((4,), float("-inf"))])["std"] == 0


def test_sizes_that_only_a_computation_refuses_go_together() -> None:
    """Without data a convolution takes a bias of any length."""

    def draw(seed: int) -> tuple[Tensor, ...]:
        return (torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(seed)),)

    (unit,) = find_units(export(UserModel(nn.Conv1d(3, 10, 3, padding=1), draw, "cpu")))
    configs = configs_of(unit)

    assert configs.shapes["inputs.weight"] == ["d3", "d1", "3"]
    assert configs.shapes["inputs.bias"] == ["d3"]


def test_sizes_of_recurrent_layers_stay() -> None:
    """PyTorch ends the process where sizes of one do not fit together."""

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.LSTM(4, 6)

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.layer(x)[0]
            return found

    def draw(seed: int) -> tuple[Tensor, ...]:
        return (torch.randn(5, 2, 4, generator=torch.Generator().manual_seed(seed)),)

    units = find_units(export(UserModel(Recurrent().eval(), draw, "cpu")))
    (unit,) = [unit for unit in units if unit.operators == ("lstm",)]
    assert not configs_of(unit).dims


def test_a_part_of_fixed_sizes_draws_its_inputs() -> None:
    """A mask beside queries keeps all sizes from varying."""

    class Attends(nn.Module):
        def forward(self, x: Tensor, seen: Tensor) -> Tensor:
            mask = seen[:, None, None]
            return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    def draw(seed: int) -> tuple[Tensor, ...]:
        x = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(seed))
        return x, torch.arange(5) < torch.tensor([[3], [5]])

    units = find_units(export(UserModel(Attends(), draw, "cpu")))
    unit = next(unit for unit in units if "scaled_dot_product_attention" in unit.operators)
    known = {"quantiles": [-2.0, *([0.0] * 9), 2.0], "mean": 0.0, "std": 1.0}
    kinds = [node.meta["val"].dtype for node in unit.parts[0].inputs]
    ranges = [{"share": 0.9} if kind is torch.bool else known for kind in kinds]
    task = part_task(unit, ranges, "net")
    names: dict[str, Any] = {}
    exec(task["reference"], names)

    assert task["attrs"]["dims"] == {"draw": "1..8"}
    config = {"draw": 1, "dtype": torch.float32}
    drawn = names["inputs"](config, torch.Generator().manual_seed(1))
    found = names["reference"](**drawn)
    assert all(tensor.isfinite().all() for tensor in found.values())


def test_names_that_mean_something_else_are_not_used() -> None:
    class Lambda(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.y, self.torch = (nn.Parameter(torch.randn(6)) for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.y + self.torch

    def draw(seed: int) -> tuple[Tensor, ...]:
        return (torch.randn(3, 6, generator=torch.Generator().manual_seed(seed)),)

    (unit,) = find_units(export(UserModel(nn.Sequential(Lambda()), draw, "cpu")))
    assert unit.name == "part_lambda"
    assert unit.function.arguments == ("x", "x2", "x3")


def test_weights_may_have_the_numbers_of_a_sequence_as_names() -> None:
    state = state_of(nn.Sequential(nn.Linear(4, 2), nn.ParameterList([torch.ones(3)])), ("x0", "y"))

    assert state == {"0.weight": "T[2, 4]", "0.bias": "T[2]", "1.0": "T[3]"}


@pytest.mark.parametrize("name", ["w-1", "w 1", "w/1", ""])
def test_other_names_of_weights_are_refused(name: str) -> None:
    module = nn.Module()
    module._parameters[name] = nn.Parameter(torch.ones(2))

    with pytest.raises(LeftOutError, match="a weight is called"):
        state_of(module, ())
