"""Models taken apart: which operators form a part, and that the parts together are the model."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "rules/model/tools"))

from modelled.graph import Graph, export
from modelled.measuring import node_operations
from modelled.parts import divide
from modelled.units import Unit, find_units, traffic
from modelled.user_model import SEED, ModelError, UserModel, load, results
from modelled.writing import constants_text, graph_text


def model_of(module: nn.Module, *shape: int) -> UserModel:
    def draw(seed: int) -> tuple[Tensor, ...]:
        return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)),)

    torch.manual_seed(SEED)
    return UserModel(module.eval(), draw, "cpu")


class Calls(nn.Module):
    """A module whose forward is a function."""

    def __init__(self, function: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x: Tensor) -> object:
        return self.function(x) if self.function.__code__.co_argcount == 1 else None


def units_of(function: Callable[[Tensor], object], *shape: int) -> list[Unit]:
    return find_units(export(model_of(Calls(function), *shape)))


def recomposed(model: UserModel, graph: Graph, units: list[Unit]) -> object:
    """What the written text of all parts computes, on other arguments than those exported with."""
    names: dict[str, object] = {"torch": torch}
    for unit in units:
        exec(unit.function.text(unit.name), names)
    by_part = {id(part): unit.name for unit in units for part in unit.parts}
    order = sorted(
        (part for unit in units for part in unit.parts),
        key=lambda part: [*map(graph.nodes.index, part.computing)][-1:],
    )
    exec(graph_text(graph, [(part, by_part[id(part)]) for part in order]), names)
    weights = [
        getattr(model.module.get_submodule(held.owner), held.name) for held in graph.held.values()
    ]
    constants = [eval(text, names) for text in constants_text(graph)]
    with torch.no_grad():
        return names["forward"](weights, constants, *model.draw(7))  # type: ignore[operator]


def test_elementwise_operators_and_reductions_form_one_part() -> None:
    (unit,) = units_of(lambda x: torch.relu(x * 2 + 1).sum(-1).sqrt(), 4, 8)

    assert unit.fused
    assert unit.operators == ("mul", "add", "relu", "sum", "sqrt")
    assert traffic(unit.parts[0]) == 4 * 8 * 4 + 4 * 4


def test_a_product_is_a_part_of_its_own() -> None:
    units = units_of(lambda x: torch.relu(torch.relu(x) @ x.T), 4, 8)

    assert [unit.operators for unit in units] == [("relu",), ("matmul",)]
    assert [len(unit.parts) for unit in units] == [2, 1]


def test_parts_never_wait_for_each_other() -> None:
    """``y + ...`` reads ``y`` past a product that waits for it, so both cannot be one part."""

    def residual(x: Tensor) -> Tensor:
        y = torch.relu(x)
        return y + y @ y.T @ y

    model = model_of(Calls(residual), 4, 8)
    graph = export(model)
    parts = divide(graph)

    made: set[object] = set(graph.arguments)
    for part in parts:
        assert {*part.inputs} <= made | {*graph.held}
        made |= {*part.outputs}
    assert len(parts) == 4


def test_a_shape_follows_the_sizes_of_the_inputs() -> None:
    (unit,) = units_of(lambda x: torch.relu(x.view(2, 6, 4, 8).transpose(1, 2)), 2, 6, 32)

    names: dict[str, Callable[..., Tensor]] = {"torch": torch}  # type: ignore[dict-item]
    exec(unit.function.text("f"), names)
    assert names["f"](torch.randn(3, 5, 16)).shape == (3, 2, 5, 8)


def test_an_oracle_stays_in_double_precision() -> None:
    (unit,) = units_of(lambda x: torch.softmax(x.half().float(), -1, dtype=torch.float32), 4, 8)

    names: dict[str, Callable[..., Tensor]] = {"torch": torch}  # type: ignore[dict-item]
    exec(unit.function.oracle_text("f"), names)
    x = torch.randn(4, 8, dtype=torch.float64)
    assert torch.equal(names["f"](x), torch.softmax(x, -1))


def test_operations_of_products_are_counted() -> None:
    model = model_of(Calls(lambda x: x @ x.T), 4, 8)
    graph = export(model)

    assert sum(node_operations(graph, model).values()) == 2 * 4 * 8 * 4


@pytest.mark.parametrize(
    ("name", "fused"),
    [
        ("llama_tiny", "add_rms_norm"),
        ("gpt2_tiny", "add_layer_norm"),
        ("bert_tiny", "add_layer_norm"),
        ("vit_tiny", "add_layer_norm"),
        ("resnet_tiny", "batch_norm2d_relu"),
        ("mamba_tiny", "silu_mul"),
        ("moe_tiny", "silu_mul"),
    ],
)
def test_the_parts_of_a_model_together_are_the_model(name: str, fused: str, tmp_path: Path) -> None:
    text = (ROOT / f"tasks/models/{name}.py").read_text()
    file = tmp_path / "model.py"
    file.write_text(text.replace("LAYERS = 2", "LAYERS = 1").replace("BLOCKS = 2", "BLOCKS = 1"))
    model = load(file)
    graph = export(model)
    units = find_units(graph)

    found = recomposed(model, graph, units)

    with torch.no_grad():
        true = model.module(*model.draw(7))
    together = zip(results(found), results(true), strict=True)
    assert all(torch.equal(one, other) for one, other in together)
    assert fused in {unit.name for unit in units}


FILE = "import torch\nbuild = lambda: {}\ninputs = lambda generator: {}\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def build(): return 1", "NO_ENTRY"),
        ("import nothing_here", "NEEDS_PACKAGE"),
        ("1 / 0", "DOES_NOT_LOAD"),
        (FILE.format("1", "()"), "NO_MODULE"),
        (FILE.format("torch.nn.Linear(2, 2)", "[1]"), "ARGUMENT_NOT_TENSOR"),
        (FILE.format("torch.nn.Linear(2, 2)", "[torch.ones(3)]"), "DOES_NOT_RUN"),
        (FILE.format("torch.nn.Dropout()", "[torch.ones(99)]"), "NOT_REPEATABLE"),
        (FILE.format("torch.nn.Dropout()", "[torch.ones(2)]"), "NOT_REPEATABLE"),
        (FILE.format("torch.nn.ReLU(inplace=True)", "[-torch.ones(9)]"), "CHANGES_ARGUMENTS"),
        (FILE.format("torch.nn.LSTM(2, 2)", "[torch.ones(3, 2)]"), "RESULT_NOT_TENSORS"),
        (FILE.format("torch.nn.ReLU()", "[torch.ones(3, 2)]") + "LOGITS = 1", "BAD_LOGITS"),
        (FILE.format("torch.nn.ReLU()", "[torch.ones(3, 2)]") + "LOGITS = 'y'", "BAD_LOGITS"),
        (FILE.format("torch.nn.ReLU()", "[torch.ones(3)]") + "LOGITS = 0", "BAD_LOGITS"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "model.py"
    file.write_text(text)

    with pytest.raises(ModelError) as caught:
        load(file)
    assert caught.value.reason == reason


@pytest.mark.parametrize("text", ["\n1 / 0", "\ndef f(:"])
def test_a_file_that_cannot_be_loaded_has_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """By a relative path, as in the sandbox."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(text)

    with pytest.raises(ModelError) as caught:
        load(Path("model.py"))
    assert caught.value.why.startswith("line 2: ")


LAYER = """import torch

class Layer(torch.nn.Module):
    def forward(self, x):
        return x @ torch.ones(4, 5)

build = Layer
inputs = lambda generator: (torch.ones(2, 3),)
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import torch\n\nbuild = lambda:\n", "line 3: SyntaxError: invalid syntax"),
        ("import torch\n1 / 0\n", "line 2: ZeroDivisionError: division by zero"),
        (LAYER, "line 5: RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    ],
)
def test_a_mistake_in_a_model_has_its_line(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "model.py"
    file.write_text(text)

    with pytest.raises(ModelError, match=f"^.*{re.escape(why)}$"):
        load(file)


def test_code_that_depends_on_data_is_refused() -> None:
    def branches(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 0 else x

    with pytest.raises(ModelError) as caught:
        export(model_of(Calls(branches), 4))
    assert caught.value.reason == "NOT_EXPORTABLE"
