"""Where ``kabuild model verify`` can tell nothing of training, by the real program."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.cli.session import builder
from kabuild.loading.request import Request
from kabuild.neural.running import ModelFile
from kabuild.neural.training import Training, training_of
from tests.testkit.cli import CliWorkspace

MODEL = '''
import torch
from torch import nn


class Scale(nn.Module):
    """Training finds the factor at once, and what is left of the loss is rounding."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.rand(4) + 1)

    def forward(self, x):
        return x * self.factor


def build():
    return Scale().eval()


def inputs(generator):
    return (torch.rand(64, 4, generator=generator) + 0.5,)


def loss(result, x):
    return (result - 0.3 * x).pow(2).mean()


def optimiser(parameters):
    return torch.optim.SGD(parameters, lr={rate})
'''
LATE = MODEL.replace(
    "        return x * self.factor\n",
    """        self.calls = getattr(self, "calls", 0) + 1
        y = x * self.factor
        return y if self.calls < 18 else y.detach() + 0 * y
""",
)
"""Its results are right, and its gradients are zero from the 18th step on."""
BREAKS = LATE.replace("y.detach() + 0 * y", "y[5:, 7]")


@pytest.fixture(scope="module")
def place(kept_workspace: CliWorkspace) -> CliWorkspace:
    return kept_workspace


def trained(place: CliWorkspace, text: str, rate: float) -> Training:
    """The steps of a model, with the loss and the optimiser of ``MODEL``."""
    name = f"at_{round(1000 * rate)}"
    place.write(f"{name}.py", MODEL.replace("{rate}", str(rate)))
    ran = place.run("model", "extract", f"{name}.py", "--samples=2", "-o", f"tasks/{name}")
    assert "the model itself" in ran.out, ran.err
    reference = (place.root / f"tasks/{name}/whole/reference.py").read_bytes()
    model = ModelFile(Path("late.py"), "late", text.replace("{rate}", str(rate)).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KABUILD_CACHE", str(place.store))
        with builder() as builds:
            return training_of(model, reference, Request((), cwd=place.root), builds)


def test_where_the_own_code_is_all_rounding_nothing_can_be_told(place: CliWorkspace) -> None:
    found = trained(place, LATE, 1.9)

    assert found.wrong == ""
    assert "nothing can be told after step" in found.problem
    assert found.known < 10


def test_a_kernel_that_loses_its_gradient_late_is_rejected(place: CliWorkspace) -> None:
    found = trained(place, LATE, 0.01)

    assert found.problem == found.wrong
    assert "the gradient of 'factor' is 1 off in step 18" in found.wrong


def test_of_training_that_ended_nothing_else_is_told(place: CliWorkspace) -> None:
    found = trained(place, BREAKS, 0.01)

    assert str(found).startswith("training: it ended after 17 of 20 steps: IndexError: ")
    assert "\n" not in str(found)
