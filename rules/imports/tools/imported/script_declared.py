"""What a script's call is as a declaration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from imported.boundary import Arguments, declared, integers_of
from imported.fitting import evaluate
from imported.functions import sized, tensors
from imported.script_results import quantised
from imported.script_stage import Seen, results
from imported.shape_space import INTEGERS, Shapes, Space

Told = dict[str, Any]


def declaration(
    shown: Seen,
    space: Space,
    told: Told,
    cases: Sequence[Mapping[str, int]],
    most: float = math.inf,
) -> dict[str, Any]:
    """The attributes of the call ``shown``, with those of a script's ``cases`` that fit.

    These have at most ``most`` elements in their arguments.
    """
    return {**_attributes(shown, space, told), **_configs(space, told, cases, most)}


def shapes_of(seen: Seen) -> Shapes:
    """The shapes of all tensors of a call, and its integers."""
    found = {f"tensors.{n}": tuple(t.shape) for n, t in tensors(seen.values).items()}
    found.update((f"outputs.{n}", tuple(t.shape)) for n, t in results(seen.result).items())
    return {**found, f"{INTEGERS}in": (*integers_of([seen.grid, *seen.values.values()]),)}


def floats_of(seen: Seen) -> list[float]:
    """The numbers of a call that are not integers."""
    return [value for value in seen.values.values() if isinstance(value, float)]


def _attributes(shown: Seen, space: Space, told: Told) -> dict[str, Any]:
    said = Arguments(iter(space.shapes[f"{INTEGERS}in"]))
    grid = f"[{said.text(shown.grid, 'grid')}]" if shown.grid else ""
    parts = [f"{name}={said.text(value, name)}" for name, value in shown.values.items()]
    outputs = results(shown.result)
    targets = "y" if isinstance(shown.result, Tensor) else ", ".join(_targets(shown, told))
    call = f"{shown.entry}{grid}({', '.join(parts)})"
    return {
        "call": f"{targets} = {call}" if told["outputs"] else call,
        "inputs": {n: declared(t, space.shapes[f"tensors.{n}"]) for n, t in said.tensors.items()},
        "updates": told["updates"],
        "compare": quantised(told["stepped"], told["outputs"]),
        "layout": {
            n: f"[{', '.join(map(str, t.stride()))}]"
            for n, t in said.tensors.items()
            if not t.is_contiguous()
        },
        "outputs": {n: declared(outputs[n], space.shapes[f"outputs.{n}"]) for n in told["outputs"]},
        "scalars": dict(said.scalars),
        **space.attributes(),
    }


def _configs(
    space: Space, told: Told, cases: Sequence[Mapping[str, int]], most: float
) -> dict[str, Any]:
    """The script's cases that the space has."""
    found = []
    high = {dim.name: dim.high for dim in space.dims}
    for case in cases:
        config = {dim: case[names[0]] for dim, names in told["dims"].items()}
        fits = all(d.low <= config[d.name] and not config[d.name] % d.step for d in space.dims)
        fits = fits and _elements(space, config) <= most
        if fits and sized(told, config) == case and config not in found:
            found.append(config)
            high = {name: max(value, config[name]) for name, value in high.items()}
    if not found:
        return {}
    return {
        "configs": found,
        "dims": {d.name: f"{d.low}..{high[d.name]}" for d in space.dims},
    }


def _elements(space: Space, dims: Mapping[str, int]) -> int:
    """The number of elements of all arguments."""
    given = (texts for name, texts in space.shapes.items() if name.startswith("tensors."))
    return sum(math.prod(evaluate(text, dims) for text in texts) for texts in given)


def _targets(seen: Seen, told: Told) -> list[str]:
    """What is done with each part of a result that is a tuple."""
    if not isinstance(seen.result, list | tuple):
        return ["_"]
    names = [f"y{index}" for index in range(len(seen.result))]
    return [name if name in told["outputs"] else "_" for name in names]
