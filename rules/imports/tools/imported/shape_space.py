"""Finds the shape space of a module, by changing its integers one at a time.

Nothing is computed: shapes come from the meta device, where tensors have no data. An integer that
can be changed, and that some shape follows, is a dim. Each axis of each tensor is then fitted with
an expression that declarations can have.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from imported.boundary import LeftOutError
from imported.constants import with_dims
from imported.fitting import Point, evaluate, fit_axis

Shapes = Mapping[str, tuple[int, ...]]
Probe = Callable[[Sequence[int]], Shapes | None]
"""The shapes of all tensors for some integers; None if the module refuses these."""

STEPS = (1, 2, 4, 8, 16, 32, 64, 128)
SMALL = 1 << 16
"""Elements of all tensors together, for a cheap config on a CPU."""

INTEGERS = "="
"""The prefix of names in "shapes" that are integer arguments, not sizes of tensors."""

FIXED = re.compile(
    r"kernel|stride|pad|dilat|pool|eps|head|group|axis|top_?k|per_?token", re.IGNORECASE
)
"""The names of integers that are not sizes, whatever follows from them."""

_SAMPLES = 12


@dataclass(frozen=True)
class Dim:
    """A size that may vary.

    Attributes:
        members: the indices of the integers that are this size.
        original: its value in the benchmark.
        small: a value that costs little on a CPU.
        low, high: its range; it moves in steps of ``step``.
    """

    name: str
    members: tuple[int, ...]
    original: int
    small: int
    low: int
    high: int
    step: int


@dataclass(frozen=True)
class Space:
    """Dims, and the shape of every tensor as expressions of them.

    ``widened`` is how many times the usual tolerance the original itself needs.
    """

    dims: tuple[Dim, ...]
    shapes: Mapping[str, list[str]]
    widened: float = 1.0

    @property
    def members(self) -> dict[str, tuple[int, ...]]:
        """The indices of each dim's integers."""
        return {dim.name: dim.members for dim in self.dims}

    @property
    def small(self) -> dict[str, int]:
        """A config that costs little on a CPU."""
        return {dim.name: dim.small for dim in self.dims}

    @property
    def where(self) -> list[str]:
        """What else must hold of dims, besides their ranges."""
        return [f"{dim.name} % {dim.step} == 0" for dim in self.dims if dim.step > 1]

    def attributes(self) -> dict[str, Any]:
        """What a declaration says of it: the benchmark's own sizes, and small ones for a CPU."""
        return {
            "dims": {dim.name: f"{dim.low}..{dim.high}" for dim in self.dims},
            "where": self.where,
            "dtypes": ["f32"],
            "configs": [{dim.name: dim.original for dim in self.dims}],
            "platform_configs": {"cpu": [self.small]},
            **({"tolerance": {"f32": self._tolerance}} if self.widened > 1 else {}),
        }

    @property
    def _tolerance(self) -> dict[str, float]:
        """The judge's for f32, whose part that follows the whole output's size is wider."""
        return {"atol": float(f"{1e-5 * self.widened:.2g}"), "rtol": 1e-4}


def explore(
    names: Sequence[str],
    values: Sequence[int],
    probe: Probe,
    *,
    seconds: float = 20.0,
    fixed: re.Pattern[str] | None = FIXED,
) -> Space:
    """The shape space of a module with the integers ``values``, called ``names``.

    After ``seconds`` of computing, integers that were not yet moved stay as they are, as do those
    whose names are ``fixed``. Raises LeftOutError.
    """
    full = probe(values)
    if full is None:
        raise LeftOutError("NO_SHAPES", "its shapes depend on data, or it fails without data")
    search = _Search(names, values, probe, full, time.process_time() + seconds)
    found = search.dims(fixed)
    while True:
        dims = search.lowered(search.shrunk(found))
        try:
            return search.space(dims)
        except _NotExpressibleError as error:
            kept = [dim for dim in found if dim.name not in error.dims]
            if len(kept) == len(found):
                raise LeftOutError("SHAPES_NOT_EXPRESSIBLE", str(error)) from None
            found = kept  # the benchmark's own sizes in the place of those that cannot be said


def between(chosen: random.Random, low: int, high: int, step: int) -> int:
    """A multiple of ``step``; small and large ones are equally probable."""
    size = round(math.exp(chosen.uniform(math.log(low), math.log(high))))
    return max(low, size // step * step)


class _NotExpressibleError(Exception):
    """No declaration can say how sizes follow ``dims``."""

    def __init__(self, what: str, dims: Collection[str]) -> None:
        super().__init__(f"{what} in no simple way")
        self.dims = dims


class _Search:
    def __init__(
        self,
        names: Sequence[str],
        values: Sequence[int],
        probe: Probe,
        full: Shapes,
        deadline: float,
    ) -> None:
        self._names = names
        self._values = values
        self._probe = probe
        self._full = full
        self._deadline = deadline

    def dims(self, fixed: re.Pattern[str] | None) -> list[Dim]:
        """The integers that can be moved, alone or with others that are equal."""
        found: list[Dim] = []
        rest: dict[int, list[int]] = {}
        for index, name in enumerate(self._names):
            if fixed and fixed.search(name):
                continue
            if step := self._step((index,)):
                found.append(self._dim(found, (index,), step))
            else:
                rest.setdefault(self._values[index], []).append(index)
        for members in rest.values():
            if len(members) > 1 and (step := self._step(tuple(members))):
                found.append(self._dim(found, tuple(members), step))
        return found

    def _dim(self, others: Sequence[Dim], members: tuple[int, ...], step: int) -> Dim:
        value, taken = self._values[members[0]], {dim.name for dim in others}
        name = base = re.sub(r"\W", "_", self._names[members[0]]).lower()
        number = 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        return Dim(name, members, value, value, value, value, step)

    def _step(self, members: tuple[int, ...]) -> int:
        """By how much integers can be moved together so that shapes follow; 0 for not at all."""
        value = self._values[members[0]]
        if self._moved(members, 2 * value) is None:
            return 0
        for step in STEPS:
            if value % step == 0 and all(self._moved(members, value + k * step) for k in (1, 3)):
                return step
        return 0

    def _moved(self, members: tuple[int, ...], value: int) -> Shapes | None:
        """The shapes with ``value`` in these places, if they differ from before."""
        if time.process_time() > self._deadline:
            return None
        moved = list(self._values)
        for index in members:
            moved[index] = value
        shapes = self._probe(moved)
        alike = shapes is not None and shapes.keys() == self._full.keys()
        return shapes if alike and shapes != self._full else None

    def _at(self, dims: Sequence[Dim], sizes: Mapping[str, int]) -> Shapes | None:
        shapes = self._probe(with_dims(self._values, {d.name: d.members for d in dims}, sizes))
        return shapes if shapes is not None and shapes.keys() == self._full.keys() else None

    def shrunk(self, dims: list[Dim]) -> list[Dim]:
        """The dims with small values, by halving the largest for as long as that works."""
        sizes = {dim.name: dim.original for dim in dims}
        shapes = self._full
        for least in (16, 8, 4, 2):
            stuck: set[str] = set()
            while _elements(shapes) > SMALL and len(stuck) < len(dims):
                dim = max((d for d in dims if d.name not in stuck), key=lambda d: sizes[d.name])
                smaller = max(least, sizes[dim.name] // 2) // dim.step * dim.step
                tried = {**sizes, dim.name: smaller}
                found = self._at(dims, tried) if 0 < smaller < sizes[dim.name] else None
                if found is None or _elements(found) == 0:
                    stuck.add(dim.name)
                else:
                    sizes, shapes = tried, found
        return [replace(dim, small=sizes[dim.name]) for dim in dims]

    def lowered(self, dims: list[Dim]) -> list[Dim]:
        """The dims with their least values, all others being small."""
        small = {dim.name: dim.small for dim in dims}
        found = []
        for dim in dims:
            low, high = 1, dim.small // dim.step
            while low < high and time.process_time() < self._deadline:
                middle = (low + high) // 2
                shapes = self._at(dims, {**small, dim.name: middle * dim.step})
                if shapes is not None and _elements(shapes):
                    high = middle
                else:
                    low = middle + 1
            found.append(replace(dim, low=high * dim.step, high=max(dim.original, dim.small)))
        return found

    def space(self, dims: Sequence[Dim]) -> Space:
        """The space of these dims. Raises LeftOutError and _NotExpressibleError."""
        shapes, wrong = self.fitted(dims), ""
        for low in (1, 2, 4, 8, None):  # least values that go together
            raised = [
                replace(d, low=d.small if low is None else min(d.small, max(d.low, low * d.step)))
                for d in dims
            ]
            wrong = self.disagrees(raised, shapes)
            if not wrong:
                return Space(tuple(raised), shapes)
        blamed = {dim.name for dim in dims if re.search(rf"\b{dim.name}\b", wrong)}
        raise _NotExpressibleError("sizes follow its dims", blamed or {d.name for d in dims[-1:]})

    @staticmethod
    def _follows(
        dim: Dim, known: Sequence[tuple[Mapping[str, int], Shapes]], name: str, axis: int
    ) -> bool:
        """Whether a size differs where a dim alone does."""
        base, size = known[0][0], known[0][1][name][axis]
        return any(
            shapes[name][axis] != size
            and all((point[n] == value) is (n != dim.name) for n, value in base.items())
            for point, shapes in known
        )

    def fitted(self, dims: Sequence[Dim]) -> dict[str, list[str]]:
        """Every axis of every tensor as an expression. Raises LeftOutError."""
        small = {dim.name: dim.small for dim in dims}
        points = [small]
        for dim in dims:
            steps = (dim.small + k * dim.step for k in (1, 2, 3, 5))
            points += [{**small, dim.name: size} for size in (*steps, 2 * dim.small)]
        points.append({dim.name: dim.original for dim in dims})
        seen = [(point, self._at(dims, point)) for point in points]
        known = [(point, shapes) for point, shapes in seen if shapes is not None]
        fitted: dict[str, list[str]] = {}
        for name, shape in known[0][1].items():
            if any(len(shapes[name]) != len(shape) for _, shapes in known):
                raise LeftOutError("RANK_VARIES", f"the rank of '{name}' depends on sizes")
            fitted[name] = []
            for axis in range(len(shape)):
                text = fit_axis([Point(point, shapes[name][axis]) for point, shapes in known])
                if text is None:
                    follows = {d.name for d in dims if self._follows(d, known, name, axis)}
                    follows = follows or {dim.name for dim in dims[-1:]}
                    raise _NotExpressibleError(f"axis {axis} of '{name}' follows its dims", follows)
                fitted[name].append(text)
        return fitted

    def disagrees(self, dims: Sequence[Dim], shapes: Mapping[str, list[str]]) -> str:
        """What fails at some point of the space: an expression or a dim."""
        for sizes in _points(dims):
            found = self._at(dims, sizes)
            if found is None:
                return next((d.name for d in dims[::-1] if sizes[d.name] != d.original), "")
            for name, shape in found.items():
                for text, size in zip(shapes[name], shape, strict=True):
                    if evaluate(text, sizes) != size:
                        return text
        return ""


def _points(dims: Sequence[Dim]) -> Iterator[dict[str, int]]:
    """Corners of a space and points in it."""
    yield {dim.name: dim.low for dim in dims}
    for one in dims:
        yield {dim.name: dim.low if dim is one else dim.high for dim in dims}
        yield {dim.name: dim.high if dim is one else dim.low for dim in dims}
    draw = random.Random(0)  # noqa: S311 - it has to be the same at every import
    for _ in range(_SAMPLES if dims else 0):
        yield {d.name: draw.randint(d.low // d.step, d.high // d.step) * d.step for d in dims}


def _elements(shapes: Shapes) -> int:
    total = 0
    for name, shape in shapes.items():
        if name.startswith(INTEGERS):
            continue
        elements = 1
        for size in shape:
            elements *= size
        total += elements
    return total
