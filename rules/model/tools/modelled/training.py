"""Training steps of a model: its loss and gradients, and how far they may be off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from modelled.user_model import ModelError, described

STEPS = 20
_SEED = 20260804
_LEAST = 2.0**-20  # of a norm: eight times the rounding unit of single precision
_TIMES = 10.0  # the model's own rounding, that is forgiven
_FURTHEST = 0.1  # that the model's own code may be off: a kernel that detaches is off by the whole
_SMALL = 1e-6  # of the norm of all gradients: below it is what is zero but for rounding


@dataclass(frozen=True)
class Step:
    """A training step.

    Attributes:
        loss: before the step.
        gradients: by the parameters' names; None if a parameter has no gradient.
    """

    loss: float
    gradients: Mapping[str, Tensor | None]


def optimiser_of(told: Any, module: nn.Module) -> torch.optim.Optimizer:
    """That of the model's file, or descent with momentum. Raises ModelError."""
    parameters = [tensor for tensor in module.parameters() if tensor.requires_grad]
    make = getattr(told, "optimiser", None)
    if make is None:
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    try:
        made = make(parameters)
    except Exception as error:
        raise ModelError("BAD_OPTIMISER", described(error)) from error
    if not isinstance(made, torch.optim.Optimizer):
        what = f"optimiser() returned a {type(made).__name__}, expected a torch.optim.Optimizer"
        raise ModelError("BAD_OPTIMISER", what)
    return made


def drawn(told: Any) -> tuple[dict[str, Tensor], list[dict[str, Tensor]]]:
    """Weights, and arguments of all steps, by the functions of a whole model's oracle."""
    config = {"draw": 1, "dtype": torch.float32}
    generators = [torch.Generator().manual_seed(_SEED + number) for number in range(STEPS + 1)]
    state = told.state(config, generators[0])
    return state, [told.inputs(config, generator) for generator in generators[1:]]


def steps(
    told: Any, module: nn.Module, arguments: Sequence[Mapping[str, Tensor]]
) -> Iterator[Step]:
    """Train a module, step by step, with the loss of the model's file."""
    optimiser = optimiser_of(told, module)
    for given in arguments:
        optimiser.zero_grad(set_to_none=True)
        loss = told.loss(module(*given.values()), *given.values())
        loss.backward()
        gradients = {
            name: None if tensor.grad is None else tensor.grad.detach().clone()
            for name, tensor in module.named_parameters()
            if tensor.requires_grad
        }
        yield Step(float(loss.detach()), gradients)
        optimiser.step()


@contextmanager
def precision(dtype: torch.dtype) -> Iterator[None]:
    """Have tensors made in this precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@dataclass(frozen=True)
class Distance:
    """How far a run is from the true one, in the worst step.

    Attributes:
        loss: relative.
        gradient: the norm of what a parameter's gradient is off, as a share of its norm.
        wrong: the first thing that is too far off, as a sentence; empty if nothing is.
        known: how many steps were compared. From the first one on in which the model's own code
            is all rounding, as where training has brought the loss to 0, nothing can be told.
    """

    loss: float
    gradient: float
    wrong: str
    known: int


def distance(given: Sequence[Step], own: Sequence[Step], true: Sequence[Step]) -> Distance:
    """Compare steps with the ``true`` ones, which were taken in double precision.

    What is allowed follows from ``own``, the model's own code in its own precision: ten times as
    much as that was off in any step so far, and always ten times ``2**-20``.
    """
    allowed_loss = _LEAST
    allowed: dict[str, float] = {}
    worst_loss = worst_gradient = 0.0
    wrong = ""
    known = next(
        (n for n, pair in enumerate(zip(own, true, strict=True)) if _is_rounding(*pair)), len(true)
    )
    compared = zip(given[:known], own, true, strict=False)
    for number, (one, mine, right) in enumerate(compared, start=1):
        allowed_loss = max(allowed_loss, _loss_apart(mine, right))
        apart = _loss_apart(one, right)
        worst_loss = max(worst_loss, apart)
        if not apart <= _TIMES * allowed_loss:
            wrong = wrong or _sentence("the loss", number, apart, allowed_loss)
        scales = _scales(right)
        for name, scale in scales.items():
            off = _apart(mine.gradients[name], right.gradients[name], scale)
            allowed[name] = max(allowed.get(name, _LEAST), off)
            if one.gradients[name] is None and _is_there(right.gradients[name]):
                wrong = wrong or f"'{name}' gets no gradient in step {number}: a kernel detaches it"
                continue
            apart = _apart(one.gradients[name], right.gradients[name], scale)
            worst_gradient = max(worst_gradient, apart)
            if not apart <= _TIMES * allowed[name]:
                wrong = wrong or _sentence(
                    f"the gradient of '{name}'", number, apart, allowed[name]
                )
    if len(given) < len(true):
        wrong = wrong or f"it ended after {len(given)} of {len(true)} steps"
    return Distance(worst_loss, worst_gradient, wrong, known)


def _is_rounding(mine: Step, right: Step) -> bool:
    """Whether the model's own code is too far off in a step for anything to be told of others.

    By the gradients of all parameters together: a single one may be zero but for rounding.
    """
    norm = sum(float(_there(tensor).norm()) ** 2 for tensor in right.gradients.values())
    off = sum(
        float((_there(mine.gradients[name]) - _there(tensor)).norm()) ** 2
        for name, tensor in right.gradients.items()
    )
    return _loss_apart(mine, right) > _FURTHEST or off > _FURTHEST**2 * norm


def _there(gradient: Tensor | None) -> Tensor:
    return torch.zeros(()) if gradient is None else gradient.double()


def _is_there(gradient: Tensor | None) -> bool:
    """Whether a gradient changes anything."""
    return gradient is not None and bool(gradient.count_nonzero())


def _sentence(what: str, number: int, apart: float, allowed: float) -> str:
    return f"{what} is {apart:.2g} off in step {number}, where {_TIMES * allowed:.2g} is allowed"


def _scales(step: Step) -> dict[str, float]:
    """By parameter, the norm that its gradient's distance is a share of."""
    norms = {
        name: 0.0 if tensor is None else float(tensor.double().norm())
        for name, tensor in step.gradients.items()
    }
    total = sum(norm * norm for norm in norms.values()) ** 0.5
    return {name: max(norm, _SMALL * total, 1e-300) for name, norm in norms.items()}


def _loss_apart(one: Step, right: Step) -> float:
    apart = abs(one.loss - right.loss) / max(abs(right.loss), 1e-300)
    return math.inf if math.isnan(apart) else apart


def _apart(one: Tensor | None, right: Tensor | None, scale: float) -> float:
    if one is None or right is None:
        return 1.0 if _is_there(one) or _is_there(right) else 0.0
    apart = float((one.double() - right.double()).norm()) / scale
    return math.inf if math.isnan(apart) else apart
