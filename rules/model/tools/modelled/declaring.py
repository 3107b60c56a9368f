"""Units and whole models as tasks of the family ``call``: attributes, kernel file, oracle."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from imported.boundary import LeftOutError, declared, returned
from torch import Tensor

from modelled.graph import value
from modelled.ranges import SHARES
from modelled.spaces import Configs, configs_of
from modelled.units import Unit
from modelled.user_model import ModelError, UserModel

DRAWN, FIRST = {"draw": "1..8"}, {"draw": 1}
"""The dim of a task whose sizes are fixed: other weights and values are drawn for each number.

A task needs a dim, so that there are configs that agents are not shown.
"""

_WEIGHT = re.compile(r"\w+(\.\w+)*")

_PART = '''\
"""Inputs and oracle of {name}, a part of the model {title}.

Written by `kabuild model extract`. The quantiles are those of the values that the part gets in the
model; no value of the model is here.
"""

import torch

SHARES = {shares}
RANGES = {ranges}


def inputs(config, generator):
    """Draw values that are distributed as in the model."""
    {sizes}
    return {{
{drawn}
    }}


def _drawn(name, shape, dtype, generator):
    known = RANGES[name]
    if "low" in known:
        ends = known["low"], known["high"] + 1
        return torch.randint(*ends, shape, generator=generator, dtype=dtype)
    if "share" in known:
        return torch.rand(shape, generator=generator) < known["share"]
    shares, values = torch.tensor(SHARES), torch.tensor(known["quantiles"])
    if values[0] == values[-1]:  # constant in a fresh model, and not in a trained one
        return (values[0] + 0.25 * torch.randn(shape, generator=generator)).to(dtype)
    drawn = torch.rand(shape, generator=generator) * (shares[-1] - shares[0]) + shares[0]
    after = torch.searchsorted(shares, drawn).clamp(1, len(SHARES) - 1)
    part = (drawn - shares[after - 1]) / (shares[after] - shares[after - 1])
    return (values[after - 1] + part * (values[after] - values[after - 1])).to(dtype)


def reference({arguments}, **_):
    """What the part computes, in the precision of its arguments."""
    {targets} = _part({arguments})
    return {{{results}}}


{oracle}'''

_ASKED = '''

# ---- Written by `kabuild model extract`: what the judge asks of the model above. ----

import torch as _torch

_model_inputs = inputs
_NAMES = {names}
_SPREAD = 0.25


def inputs(config, generator):
    """Draw one call's arguments, as the model's own function does."""
    return dict(zip(_NAMES, _model_inputs(generator)))


def state(config, generator):
    """Draw weights as the model's constructor does. Constant ones are moved, as training would."""
    seed = int(_torch.randint(2**62, (1,), generator=generator))
    with _torch.random.fork_rng(devices=[]), _torch.no_grad():
        _torch.manual_seed(seed)
        found, moved = build().state_dict(), {{}}
        for name, tensor in found.items():
            if tensor.is_floating_point() and tensor.unique().numel() == 1:
                key = tensor.data_ptr(), tensor.shape
                if key not in moved:
                    moved[key] = tensor + _SPREAD * _torch.randn(tensor.shape).to(tensor.dtype)
                found[name] = moved[key]
        return {{name: tensor.clone() for name, tensor in found.items()}}


def _prepared(state, given):
    """The model with these weights, one call's arguments, and the precision of both."""
    arguments = [given[name] for name in _NAMES]
    wide = any(tensor.dtype == _torch.float64 for tensor in (*state.values(), *arguments))
    model = build()
    if wide:
        model = model.double()
    model.load_state_dict(state)
    return model, arguments, _torch.float64 if wide else _torch.get_default_dtype()
'''

_WHOLE = '''

def reference(state, **given):
    """What the model computes with these weights, in their precision."""
    model, arguments, dtype = _prepared(state, given)
    before = _torch.get_default_dtype()
    _torch.set_default_dtype(dtype)
    try:
        with _torch.no_grad():
            found = model(*arguments)
    finally:
        _torch.set_default_dtype(before)
    found = found if isinstance(found, (list, tuple)) else [found]
    return dict(zip({results}, found))
'''


def part_task(unit: Unit, ranges: Sequence[Any], title: str) -> dict[str, Any]:
    """A unit as a task. Raises LeftOutError."""
    function = unit.function
    if not function.arguments or not function.results:
        raise LeftOutError("NO_INPUTS", "it reads no tensor, or nothing reads its results")
    configs = configs_of(unit)
    inputs = {
        name: declared(value(node), [*configs.shapes[f"inputs.{name}"]])
        for name, node in zip(function.arguments, unit.parts[0].inputs, strict=True)
    }
    outputs = {
        name: declared(tensor, [*configs.shapes[f"outputs.{name}"]])
        for name, tensor in zip(function.results, configs.outputs, strict=True)
    }
    targets, arguments = ", ".join(function.results), ", ".join(function.arguments)
    known = dict(zip(function.arguments, ranges, strict=True))
    calls = sum(configs.calls)
    return {
        "name": unit.name,
        "attrs": {
            "kernel": f"{unit.name}.py",
            "reference": "reference.py",
            "brief": f"The part {unit.name} of the model {title}, which calls it {calls} times: "
            f"{', '.join(unit.operators)}. Compute what {unit.name}.py does, faster. Its results "
            "are new tensors.",
            "call": f"{targets} = {unit.name}({arguments})",
            "inputs": inputs,
            "outputs": outputs,
            "dims": dict(configs.dims) or DRAWN,
            "where": list(configs.where),
            "dtypes": ["f32"],
            "configs": [dict(sizes) or FIRST for sizes in configs.declared],
            **({"platform_configs": {"cpu": [dict(configs.small)]}} if configs.small else {}),
            "flops": configs.flops,
            "tags": ["model", title],
        },
        "kernel": f'"""The part {unit.name} of the model {title}, as PyTorch computes it."""\n\n'
        f"import torch\n\n\n{function.text(unit.name)}",
        "reference": _PART.format(
            name=unit.name,
            title=title,
            shares=SHARES,
            ranges=_table(known),
            sizes=_dims(configs),
            drawn="\n".join(f"        {_draw(name, inputs[name])}," for name in function.arguments),
            arguments=arguments,
            targets=targets,
            results=", ".join(f'"{name}": {name}' for name in function.results),
            oracle=function.oracle_text("_part"),
        ),
        "calls": list(configs.calls),
        "covered": [[list(shape) for shape in shapes] for shapes in sorted(configs.covered)],
    }


def whole_task(model: UserModel, text: str, title: str) -> dict[str, Any]:
    """The whole model as a task. Raises ModelError."""
    arguments = model.arguments
    names = [f"x{i}" for i in range(len(arguments))]
    results = model.call(arguments)
    try:
        targets, found = returned(results[0] if len(results) == 1 else results)
        state = state_of(model.module, (*names, *found))
        attrs = {
            "kernel": "model.py",
            "reference": "reference.py",
            "brief": f"The whole model {title}: build() returns the module, whose weights are "
            "loaded by their names. Make a call of it faster; its results have to stay the same.",
            "call": f"{targets} = build()({', '.join(names)})",
            "inputs": dict(zip(names, map(fixed, arguments), strict=True)),
            "outputs": {name: fixed(tensor) for name, tensor in found.items()},
            "state": state,
            "dims": DRAWN,
            "dtypes": ["f32"],
            "configs": [FIRST],
            "tags": ["model", "whole", title],
        }
    except LeftOutError as error:
        raise ModelError(error.reason, error.why) from None
    oracle = _WHOLE.format(results=tuple(found))
    return {"attrs": attrs, "reference": text + asked_of(names) + oracle}


def asked_of(names: Sequence[str]) -> str:
    """How the judge draws weights and arguments of a model, as text behind the model's own."""
    return _ASKED.format(names=tuple(names))


def state_of(module: torch.nn.Module, taken: Sequence[str]) -> dict[str, str]:
    """The declarations of a module's weights and buffers. Raises LeftOutError."""
    weights = module.state_dict()
    for name in weights:
        if not _WEIGHT.fullmatch(name):
            why = f"a weight is called {name[:80]!r}; write letters, digits and '_' between dots"
            raise LeftOutError("WEIGHT_NAME", why)
        if name in taken:
            why = f"a weight is called {name!r}, as an argument or a result of the task is"
            raise LeftOutError("WEIGHT_NAME", why)
    return {name: fixed(tensor) for name, tensor in weights.items()}


def fixed(tensor: Tensor) -> str:
    """A tensor's declaration with numbers as sizes. Raises LeftOutError."""
    return declared(tensor, [str(size) for size in tensor.shape])


def _dims(configs: Configs) -> str:
    names = [*configs.dims]
    if not names:
        return "# All sizes are fixed: a config's number stands for other values."
    values = (f'config["{name}"]' for name in names)
    return f"{', '.join(names)} = {', '.join(values)}"


def _draw(name: str, said: str) -> str:
    """``"x": _drawn("x", (rows, 64), config["dtype"], generator)`` of ``T[rows, 64]``."""
    kind, _, shape = said.removesuffix("]").partition("[")
    dtype = 'config["dtype"]' if kind == "T" else _TORCH[kind]
    sizes = f"({shape}{',' * (',' not in shape)})" if shape else "()"
    return f'"{name}": _drawn("{name}", {sizes}, {dtype}, generator)'


_TORCH: Mapping[str, str] = {
    **{f"i{bits}": f"torch.int{bits}" for bits in (8, 16, 32, 64)},
    "f64": "torch.float64",
    "f16": "torch.float16",
    "bf16": "torch.bfloat16",
    "u8": "torch.uint8",
    "bool": "torch.bool",
    "f8e4m3": "torch.float8_e4m3fn",
    "f8e5m2": "torch.float8_e5m2",
    "f8e4m3fnuz": "torch.float8_e4m3fnuz",
    "f8e5m2fnuz": "torch.float8_e5m2fnuz",
}


def _table(known: Mapping[str, Any]) -> str:
    lines = (f"    {json.dumps(name)}: {json.dumps(said)}," for name, said in known.items())
    return "\n".join(("{", *lines, "}"))
