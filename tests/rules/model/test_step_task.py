"""The training step of a model as a task: what its results are called, and what it leaves out."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "rules/model/tools"), str(ROOT / "rules/imports/tools")]

from modelled.declaring import whole_task
from modelled.step_task import step_task
from modelled.user_model import ModelError, load

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Module()
        self.a.b = nn.Parameter(torch.ones(4))
        {more}

    def forward(self, x):
        return x * self.a.b + {used}


def build():
    return Net()


def inputs(generator):
    return (torch.randn(3, 4, generator=generator),)


def loss(y, x):
    return (y - x).pow(2).mean()
"""


def step(tmp_path: Path, more: str, used: str) -> dict[str, Any]:
    """The attributes of the task ``step`` of a model with another weight."""
    file = tmp_path / "model.py"
    file.write_text(MODEL.format(more=more, used=used))
    model = load(file)
    made = step_task(model, file.read_text(), "net")
    assert made is not None
    assert made["attrs"]["state"] == whole_task(model, "", "net")["attrs"]["state"]
    attrs: dict[str, Any] = made["attrs"]
    return attrs


@pytest.mark.parametrize(
    ("more", "used", "results"),
    [
        ("pass", "0", ["loss", "d_a_b"]),
        ("self.a_b = nn.Parameter(torch.ones(4))", "self.a_b", ["loss", "d_a_b", "d_a_b_1"]),
        ("self.loss = nn.Parameter(torch.ones(4))", "self.loss", ["loss_1", "d_loss", "d_a_b"]),
        ("self.empty = nn.Parameter(torch.ones(0))", "self.empty.sum()", ["loss", "d_a_b"]),
        (
            "setattr(self, 'w' * 300, nn.Parameter(torch.ones(4)))",
            "getattr(self, 'w' * 300)",
            ["loss", "d_" + "w" * 98, "d_a_b"],
        ),
    ],
)
def test_results_have_names_of_their_own(
    tmp_path: Path, more: str, used: str, results: list[str]
) -> None:
    """They differ from each other and from the weights'; weights without elements have none."""
    found = step(tmp_path, more, used)

    assert sorted(found["outputs"]) == sorted(results)
    assert found["call"] == f"{', '.join(found['outputs'])} = training_step()(x0)"
    assert not found["outputs"].keys() & found["state"].keys()


@pytest.mark.parametrize(
    ("more", "used", "said"),
    [
        (
            "setattr(self, 'w-1', nn.Parameter(torch.ones(4)))",
            "getattr(self, 'w-1')",
            "WEIGHT_NAME: a weight is called 'w-1'; write letters",
        ),
        (
            "self.x0 = nn.Parameter(torch.ones(4))",
            "self.x0",
            "WEIGHT_NAME: a weight is called 'x0', as an argument or a result of the task is",
        ),
        (
            "self.e = nn.Embedding(3, 4, sparse=True)",
            "self.e(torch.arange(3))",
            "BAD_LOSS: the gradient of 'e.weight' is sparse",
        ),
        (
            "self.a.b.register_hook(lambda gradient: 1 / 0)",
            "0",
            "BAD_LOSS: its backward pass raised ZeroDivisionError: division by zero",
        ),
    ],
)
def test_weights_that_no_task_can_have_are_refused(
    tmp_path: Path, more: str, used: str, said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        step(tmp_path, more, used)


def test_dense_gradients_of_an_embedding_are_results(tmp_path: Path) -> None:
    found = step(tmp_path, "self.e = nn.Embedding(3, 4)", "self.e(torch.arange(3))")

    assert found["outputs"]["d_e_weight"] == "T[3, 4]"


def test_a_model_without_a_gradient_says_of_which_weight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel without a backward pass is the usual cause."""
    text = MODEL.format(more="pass", used="0")
    (tmp_path / "model.py").write_text(text)
    made = step_task(load(tmp_path / "model.py"), text, "net")
    assert made is not None
    candidate, adapter = ModuleType("candidate"), ModuleType("adapter")
    exec(
        text.replace("x * self.a.b", "x * self.a.b.detach() + x.requires_grad_()"), vars(candidate)
    )
    monkeypatch.setitem(sys.modules, "candidate", candidate)
    exec(made["adapter"], vars(adapter))

    with pytest.raises(RuntimeError, match=r"'a\.b' gets no gradient: a kernel without a backward"):
        adapter.training_step()(torch.ones(3, 4))
