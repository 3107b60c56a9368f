"""The training step of a whole model as a task of the family ``call``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Sequence
from typing import Any

import torch
from imported.boundary import LeftOutError

from modelled.declaring import DRAWN, FIRST, asked_of, fixed, state_of
from modelled.user_model import ModelError, UserModel, described

_LONGEST = 100  # letters of a result's name

_ADAPTER = '''

# ---- Written by `kabuild model extract`: a training step of a solution's model. ----

import candidate as _candidate
import torch as _torch

_LEARN = {learn}


class _Step(_torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = _candidate.build()

    def load_state_dict(self, state, strict=True):
        return self.model.load_state_dict(state, strict=strict)

    def forward(self, *arguments):
        self.model.zero_grad(set_to_none=True)
        with _torch.enable_grad():
            found = loss(self.model(*arguments), *arguments)
            found.backward()
        parameters = dict(self.model.named_parameters())
        for name in _LEARN:
            if parameters[name].grad is None:
                raise RuntimeError(
                    f"{{name!r}} gets no gradient: a kernel without a backward pass detaches it. "
                    "For inference alone, remove loss() from the model's file"
                )
        return found.detach(), *(parameters[name].grad for name in _LEARN)


def training_step():
    """A module whose call returns the loss and the gradients of all weights that have one."""
    return _Step()
'''

_REFERENCE = '''

_LEARN = {learn}
_RESULTS = {results}


def reference(state, **given):
    """The loss with these weights, and their gradients, in their precision."""
    model, arguments, dtype = _prepared(state, given)
    before = _torch.get_default_dtype()
    _torch.set_default_dtype(dtype)
    try:
        with _torch.enable_grad():
            found = loss(model(*arguments), *arguments)
            found.backward()
    finally:
        _torch.set_default_dtype(before)
    parameters = dict(model.named_parameters())
    gradients = (parameters[name].grad for name in _LEARN)
    return dict(zip(_RESULTS, (found.detach(), *gradients)))
'''


def step_task(model: UserModel, text: str, title: str) -> dict[str, Any] | None:
    """A training step of the model, without the optimiser, as a task; None without a loss.

    Its results are the loss and the gradients of all weights that have one. Raises ModelError.
    """
    if not hasattr(model.code, "loss"):
        return None
    arguments = model.arguments
    model.module.zero_grad(set_to_none=True)
    try:
        loss = model.code.loss(model.module(*arguments), *arguments)
        loss.backward()
    except Exception as error:
        raise ModelError("BAD_LOSS", f"its backward pass raised {described(error)}") from error
    gradients = {
        name: tensor.grad
        for name, tensor in model.module.named_parameters()
        if tensor.grad is not None and tensor.numel()
    }
    learn = [*gradients]
    results = tuple(_names(["loss", *(f"d_{name}" for name in learn)], model.module.state_dict()))
    names = [f"x{i}" for i in range(len(arguments))]
    try:
        for name, gradient in gradients.items():
            if gradient.layout is not torch.strided:
                why = f"the gradient of {name!r} is sparse; build the module with dense gradients"
                raise LeftOutError("BAD_LOSS", why)
        outputs = [fixed(loss.detach()), *map(fixed, gradients.values())]
        attrs = {
            "kernel": "model.py",
            "reference": "reference.py",
            "adapter": "adapter.py",
            "entry": "build",
            "brief": f"A training step of the model {title}, without the optimiser. build() "
            "returns the module, whose weights are loaded by their names. Make a call and its "
            "backward pass faster; the loss and the weights' gradients have to stay the same.",
            "call": f"{', '.join(results)} = training_step()({', '.join(names)})",
            "inputs": dict(zip(names, map(fixed, arguments), strict=True)),
            "outputs": dict(zip(results, outputs, strict=True)),
            "state": state_of(model.module, (*names, *results)),
            "dims": DRAWN,
            "dtypes": ["f32"],
            "configs": [FIRST],
            "tags": ["model", "step", title],
        }
    except LeftOutError as error:
        raise ModelError(error.reason, error.why) from None
    finally:
        model.module.zero_grad(set_to_none=True)
    oracle = _REFERENCE.format(learn=tuple(learn), results=results)
    return {
        "attrs": attrs,
        "adapter": text + _ADAPTER.format(learn=tuple(learn)),
        "reference": text + asked_of(names) + oracle,
    }


def _names(wanted: Sequence[str], taken: Container[str]) -> list[str]:
    """What the results are called: ``d_layers_0_weight`` of ``d_layers.0.weight``."""
    found: list[str] = []
    for name in wanted:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII).lower()[:_LONGEST]
        choices = itertools.chain([plain], (f"{plain}_{i}" for i in itertools.count(1)))
        found.append(next(each for each in choices if each not in found and each not in taken))
    return found
