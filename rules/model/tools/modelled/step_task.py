"""The training step of a whole model as a task of the family ``call``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from imported.boundary import LeftOutError

from modelled.declaring import DRAWN, FIRST, asked_of, fixed
from modelled.user_model import ModelError, UserModel

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
    loss = model.code.loss(model.module(*arguments), *arguments)
    loss.backward()
    learn = [name for name, tensor in model.module.named_parameters() if tensor.grad is not None]
    gradients = [tensor.grad for tensor in model.module.parameters() if tensor.grad is not None]
    results = ("loss", *_names(learn))
    names = [f"x{i}" for i in range(len(arguments))]
    try:
        outputs = [fixed(loss.detach()), *map(fixed, gradients)]
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
            "state": {name: fixed(tensor) for name, tensor in model.module.state_dict().items()},
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


def _names(learn: Sequence[str]) -> list[str]:
    """What the gradients are called: ``d_layers_0_weight`` of ``layers.0.weight``."""
    found: list[str] = []
    for name in learn:
        plain = "d_" + re.sub(r"\W", "_", name, flags=re.ASCII).lower()
        found.append(plain if plain not in found else f"{plain}_{len(found)}")
    return found
