"""The shape space of a unit: the model's own shapes as configs, by how often they occur."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import torch
from imported.boundary import LeftOutError
from imported.fitting import Point, evaluate, fit_axis
from imported.shape_space import SMALL, Dim, Shapes, Space, explore
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from modelled.graph import value
from modelled.units import Shapes as InputShapes
from modelled.units import Unit

_LARGE = 16 * SMALL
_CRASHING = {"lstm", "gru", "rnn_tanh", "rnn_relu"}
"""Operators that end the process for sizes that do not fit together."""

_SECONDS = 5.0
_MOST_ELEMENTS, _MOST_PRODUCTS = 1 << 22, 1 << 28
"""Of a probe that computes: elements, and elements of the largest tensor times its longest axis."""

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Configs:
    """What a declaration says of a unit's sizes.

    Attributes:
        shapes: of ``inputs.x`` and ``outputs.y``, as expressions of dims.
        calls: how often each config occurs, in the order of ``declared``.
        covered: the shapes of inputs that are configs.
        outputs: without data, to know their dtypes.
    """

    dims: Mapping[str, str]
    where: Sequence[str]
    declared: Sequence[Sizes]
    small: Sizes | None
    calls: Sequence[int]
    covered: frozenset[InputShapes]
    shapes: Mapping[str, Sequence[str]] = field(repr=False)
    outputs: Sequence[Tensor] = field(repr=False)
    flops: str = "0"


class Probe:
    """A unit's function without data: which shapes its results have for which inputs."""

    def __init__(self, unit: Unit) -> None:
        names: dict[str, Any] = {"torch": torch}
        exec(unit.function.text("part"), names)  # noqa: S102 - written here
        self._call = names["part"]
        self._unit = unit
        self._ranks = [len(shape) for shape in self.shapes_of_inputs()]

    def shapes_of_inputs(self) -> InputShapes:
        """The shapes with which the unit is called most often."""
        return self._unit.shapes.most_common(1)[0][0]

    def split(self, values: Sequence[int]) -> InputShapes:
        """Sizes of all axes as shapes."""
        found, rest = [], list(values)
        for rank in self._ranks:
            found.append(tuple(rest[:rank]))
            rest = rest[rank:]
        return tuple(found)

    def outputs(self, shapes: InputShapes, device: str = "meta") -> list[Tensor]:
        """The results, on ``meta`` without data. Raises whatever PyTorch does."""
        given = [
            torch.zeros(shape, dtype=dtype, device=device)
            for shape, dtype in zip(shapes, self._unit.dtypes, strict=True)
        ]
        with torch.no_grad():
            found = self._call(*given)
        return list(found) if isinstance(found, tuple) else [found]

    def operations(self, shapes: InputShapes) -> int:
        """Operations of a call; where PyTorch counts none, one an operator and element."""
        with FlopCounterMode(display=False) as counter:
            outputs = self.outputs(shapes)
        sizes = [*map(prod, shapes), *(t.numel() for t in outputs)]
        return counter.get_total_flops() or len(self._unit.operators) * max(sizes)

    def _costs_little(self, shapes: Sequence[Sequence[int]]) -> bool:
        sizes = [prod(shape) for shape in shapes]
        return sum(sizes) <= _MOST_ELEMENTS and max(sizes) * max(
            map(max, filter(None, shapes))
        ) <= (_MOST_PRODUCTS)

    def __call__(self, values: Sequence[int]) -> Shapes | None:
        """All shapes for the sizes of all axes; None where the function refuses them."""
        shapes = self.split(values)
        try:
            outputs = self.outputs(shapes)
            if self._costs_little([*shapes, *(tuple(t.shape) for t in outputs)]):
                outputs = self.outputs(shapes, "cpu")  # which checks more than meta does
        except Exception:  # noqa: BLE001 - whatever an operator raises for these sizes
            return None
        named = zip(self._unit.function.arguments, shapes, strict=True)
        return {
            **{f"inputs.{name}": shape for name, shape in named},
            **{
                f"outputs.{name}": tuple(tensor.shape)
                for name, tensor in zip(self._unit.function.results, outputs, strict=True)
            },
        }


def configs_of(unit: Unit) -> Configs:
    """The shape space of a unit. Sizes that no declaration can say stay as they are."""
    probe = Probe(unit)
    flat = [size for shape in probe.shapes_of_inputs() for size in shape]
    space = Space((), _numbers(probe(flat) or {}))
    if not _CRASHING & {*unit.operators}:
        with suppress(LeftOutError):
            space = explore(_names(unit, flat), flat, probe, seconds=_SECONDS)
    found: list[tuple[Sizes, int, InputShapes]] = []
    for shapes, calls in unit.shapes.most_common():
        sizes = _sizes(space, [size for shape in shapes for size in shape])
        if sizes is not None and _says(space, sizes, probe, shapes):
            found.append((sizes, calls, shapes))
    space = replace(space, dims=tuple(_widened(dim, [f[0] for f in found]) for dim in space.dims))
    largest = max(sum(map(prod, shapes)) for _, _, shapes in found)
    return Configs(
        dims={dim.name: f"{dim.low}..{dim.high}" for dim in space.dims},
        where=space.where,
        declared=[sizes for sizes, _, _ in found],
        small=space.small if space.dims and largest > _LARGE else None,
        calls=[calls for _, calls, _ in found],
        covered=frozenset(shapes for _, _, shapes in found),
        shapes=space.shapes,
        outputs=probe.outputs(found[0][2]),
        flops=_flops(probe, space, flat),
    )


def _names(unit: Unit, flat: Sequence[int]) -> list[str]:
    """What axes are called; ``axis`` keeps one as it is.

    An index must not lie outside of a smaller table, so beside integers only their own axes vary.
    """
    with_integers = any(not t.is_floating_point for t in unit.dtypes)
    names: list[str] = []
    for node in unit.parts[0].inputs:
        may_vary = not with_integers or not value(node).dtype.is_floating_point
        names += [f"d{len(names) + i}" if may_vary else "axis" for i in range(value(node).dim())]
    assert len(names) == len(flat)
    return names


def _numbers(shapes: Shapes) -> dict[str, list[str]]:
    return {name: [str(size) for size in shape] for name, shape in shapes.items()}


def _sizes(space: Space, flat: Sequence[int]) -> dict[str, int] | None:
    """The values of dims for these sizes, if they lie on the space's steps."""
    sizes = {dim.name: flat[dim.members[0]] for dim in space.dims}
    fits = all(
        sizes[d.name] >= d.low
        and sizes[d.name] % d.step == 0
        and all(flat[index] == sizes[d.name] for index in d.members)
        for d in space.dims
    )
    return sizes if fits else None


def _says(space: Space, sizes: Sizes, probe: Probe, shapes: InputShapes) -> bool:
    """Whether the space's expressions give the shapes that a call has."""
    found = probe([size for shape in shapes for size in shape])
    return found is not None and all(
        [evaluate(text, sizes) for text in space.shapes[name]] == [*shape]
        for name, shape in found.items()
    )


def _widened(dim: Dim, configs: Sequence[Sizes]) -> Dim:
    return replace(dim, high=max(dim.high, *(sizes[dim.name] for sizes in configs)))


def _flops(probe: Probe, space: Space, flat: Sequence[int]) -> str:
    """The operations of a call as an expression of dims; 0 where none fits."""
    base = {dim.name: dim.original for dim in space.dims}
    low = {dim.name: dim.low for dim in space.dims}
    middle = {d.name: (d.low + d.original) // 2 // d.step * d.step for d in space.dims}
    points = [base, low, middle]
    points += [{**base, name: end[name]} for end in (low, middle) for name in base]
    found = []
    for sizes in points:
        moved = list(flat)
        for dim in space.dims:
            for index in dim.members:
                moved[index] = sizes[dim.name]
        try:
            found.append(Point(sizes, probe.operations(probe.split(moved))))
        except Exception:  # noqa: BLE001 - as in a probe
            return "0"
    return fit_axis(found) or "0"
