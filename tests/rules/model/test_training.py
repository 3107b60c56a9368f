"""How far training steps may be off, and from where on they are wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "rules/model/tools"), str(ROOT / "rules/imports/tools")]

from model_steps import main as train
from model_training import judged
from modelled.training import (
    STEPS,
    Distance,
    Step,
    distance,
    drawn,
    optimiser_of,
    precision,
    steps,
)
from modelled.user_model import ModelError, load

Kernel = Callable[[Tensor], Tensor]
SIZE = 8


class Net(nn.Module):
    """A layer, a kernel, and another layer; a shift whose true gradient is zero."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, 1)
        self.shift = nn.Parameter(torch.ones(1))
        self.kernel = kernel

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = x + self.shift - self.shift
        y: Tensor = self.last(self.kernel(x))
        return y


class Backward(torch.autograd.Function):
    """SiLU, whose gradient is multiplied by ``factor`` from its call ``since`` on."""

    factor, since, calls = 1.0, 0, 0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        Backward.calls += 1
        factor = Backward.factor if Backward.calls > Backward.since else 1.0
        gate = torch.sigmoid(x)
        dx: Tensor = dy * gate * (1 + x * (1 - gate)) * factor
        return dx


def state(config: Any, generator: torch.Generator) -> dict[str, Tensor]:
    torch.manual_seed(int(torch.randint(1000, (), generator=generator)))
    return Net(nn.functional.silu).state_dict()


TOLD = SimpleNamespace(
    state=state,
    inputs=lambda config, generator: {"x": torch.randn(16, SIZE, generator=generator)},
    loss=lambda y, x: ((y - x.sum(-1, keepdim=True)) ** 2).mean(),
)


def trained(kernel: Kernel, dtype: torch.dtype = torch.float32) -> list[Step]:
    weights, arguments = drawn(TOLD)
    with precision(dtype):
        net = Net(kernel).to(dtype)
        net.load_state_dict({name: tensor.to(dtype) for name, tensor in weights.items()})
        given = [{name: tensor.to(dtype) for name, tensor in one.items()} for one in arguments]
        return list(steps(TOLD, net, given))


@pytest.fixture(scope="module")
def own() -> list[Step]:
    return trained(nn.functional.silu)


@pytest.fixture(scope="module")
def true() -> list[Step]:
    return trained(nn.functional.silu, torch.float64)


def found(kernel: Kernel, own: list[Step], true: list[Step]) -> Distance:
    return distance(trained(kernel), own, true)


@pytest.fixture
def backward(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, int], Kernel]:
    def make(factor: float, since: int) -> Kernel:
        monkeypatch.setattr(Backward, "calls", 0)
        monkeypatch.setattr(Backward, "factor", factor)
        monkeypatch.setattr(Backward, "since", since)
        return Backward.apply

    return make


def test_the_loss_falls_and_rounding_is_forgiven(own: list[Step], true: list[Step]) -> None:
    apart = distance(own, own, true)

    assert len(true) == STEPS
    assert true[-1].loss < true[0].loss
    assert apart.wrong == ""
    assert 0 < apart.gradient < 1e-4


def test_an_own_gradient_that_is_right_passes(
    own: list[Step], true: list[Step], backward: Callable[[float, int], Kernel]
) -> None:
    assert found(backward(1.0, 0), own, true).wrong == ""


def test_a_slightly_wrong_gradient_is_rejected_in_the_first_step(
    own: list[Step], true: list[Step], backward: Callable[[float, int], Kernel]
) -> None:
    apart = found(backward(1.001, 0), own, true)

    assert apart.wrong.startswith("the gradient of 'first.weight' is 0.001 off in step 1, where ")


def test_a_gradient_that_is_wrong_later_is_rejected_then(
    own: list[Step], true: list[Step], backward: Callable[[float, int], Kernel]
) -> None:
    """As of a kernel that keeps something between calls."""
    apart = found(backward(1.001, 7), own, true)

    assert apart.wrong.startswith("the gradient of 'first.weight' is 0.001 off in step 8, where ")


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x: nn.functional.silu(x.detach()),
        lambda x: nn.functional.silu(x).detach(),
    ],
)
def test_a_kernel_that_detaches_is_rejected(
    own: list[Step], true: list[Step], kernel: Kernel
) -> None:
    assert "'first.weight' gets no gradient in step 1" in found(kernel, own, true).wrong


def test_another_result_is_told_by_the_loss(own: list[Step], true: list[Step]) -> None:
    apart = found(lambda x: nn.functional.silu(x) * 1.001, own, true)

    assert apart.wrong.startswith("the loss is ")


def test_no_number_is_wrong(own: list[Step], true: list[Step]) -> None:
    apart = found(lambda x: nn.functional.silu(x) * float("nan"), own, true)

    assert apart.loss == float("inf")
    assert apart.wrong.startswith("the loss is inf off in step 1")


def test_where_the_own_code_is_all_rounding_nothing_is_compared(
    own: list[Step], true: list[Step]
) -> None:
    """As where the loss has come to 0: ten times the own error would allow anything."""
    zero = dict.fromkeys(true[0].gradients)
    noise = [*own[:12], *(Step(one.loss, zero) for one in own[12:])]
    detached = [*own[:12], *(Step(one.loss, zero) for one in own[12:])]

    found = distance(detached, noise, true)

    assert (found.wrong, found.known) == ("", 12)
    assert distance(own, own, true).known == STEPS
    assert "gets no gradient in step 13" in distance(detached, own, true).wrong


def test_too_few_steps_are_wrong(own: list[Step], true: list[Step]) -> None:
    assert distance(own[:3], own, true).wrong == f"it ended after 3 of {STEPS} steps"


MODEL = """
import torch
from torch import nn

def build():
    return nn.Linear(4, 1)

def inputs(generator):
    return (torch.randn(3, 4, generator=generator),)

def loss(y, x):
    return (y ** 2).mean()
"""
ORACLE = """
_inputs = inputs

def inputs(config, generator):
    return {"x": _inputs(generator)[0]}

def state(config, generator):
    torch.manual_seed(1)
    return build().state_dict()
"""
ENDS = """
import torch
from torch import nn

class Ends(nn.Linear):
    calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 2:
            raise RuntimeError("no backward kernel")
        return super().forward(x)

def build():
    return Ends(4, 1)
"""


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        (MODEL, ""),
        (ENDS, f"it ended after 2 of {STEPS} steps: RuntimeError: no backward kernel"),
    ],
)
def test_steps_are_written_by_one_process_and_judged_by_another(
    tmp_path: Path, model: str, wrong: str
) -> None:
    given, reference, out = (tmp_path / name for name in ("model.py", "reference.py", "steps.bin"))
    given.write_text(model)
    reference.write_text(MODEL + ORACLE)

    assert train(str(given), str(reference), str(out)) == 0

    assert judged(reference, out)["wrong"] == wrong
    out.write_bytes(out.read_bytes()[:-1])
    assert f"of {STEPS} steps" in judged(reference, out)["wrong"]
    for forged in (b"", b"no JSON\n", b"[]\n", b"{}\n", b"[" * 100_000 + b"\n"):
        out.write_bytes(forged)
        said = f"it ended after 0 of {STEPS} steps: what it wrote cannot be read"
        assert judged(reference, out)["wrong"] == said


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (
            "return y",
            r"loss\(\) returned torch.float32 with 2 axes, expected a tensor of one float",
        ),
        ("return 3", r"loss\(\) returned <class 'int'>"),
        ("return x.sum()", r"loss\(\) depends on no weight"),
        ("return y.nothing", "line 12: AttributeError"),
        ("return y.mean() * float('nan')", "loss\\(\\) returned nan, expected a finite number"),
        ("x.zero_(); return y.mean()", "loss\\(\\) changes the model's arguments"),
        ("return (y * torch.rand_like(y)).mean()", "equal calls of loss\\(\\) differ"),
    ],
)
def test_a_loss_that_trains_nothing_is_refused(tmp_path: Path, loss: str, said: str) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL.replace("return (y ** 2).mean()", loss))

    with pytest.raises(ModelError, match=f"BAD_LOSS: {said}"):
        load(file)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda parameters: 5, "returned a int, expected a torch.optim.Optimizer"),
        (lambda parameters: torch.optim.SGD(parameters, lr=-1.0), "Invalid learning rate"),
        (3, "TypeError"),
    ],
)
def test_an_optimiser_that_is_none_is_refused(make: object, said: str) -> None:
    with pytest.raises(ModelError, match=f"BAD_OPTIMISER: .*{said}"):
        optimiser_of(SimpleNamespace(optimiser=make), nn.Linear(2, 2))
