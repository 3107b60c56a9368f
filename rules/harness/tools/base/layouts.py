"""The layout of a tensor: its strides, and the elements that they span.

============================ =========================================================
(nothing)                    contiguous; each tensor of a list begins at a multiple of 64
``[3 * dim, 1]``             these strides, in elements
``channels_last``            the second axis is the innermost one
``expanded``                 one element is repeated for all
``dense``                    outputs only: the axes in any order, without gaps
``any``                      outputs only: any strides, such as those of a slice
============================ =========================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from base import shapes
from base.program import Argument

DENSE, ANY = "dense", "any"
_EXPANDED = "expanded"
_CHANNELS_LAST = "channels_last"
_STRIDES = re.compile(r"\s*\[(.*)\]\s*", re.DOTALL)
_ALIGNED = 64  # elements

Sizes = tuple[int, ...]


def strides(argument: Argument, dims: Mapping[str, int]) -> Sizes:
    """The strides in elements. Raises ShapeError if the dims give no valid strides."""
    shape = shapes.shape(argument, dims)
    if argument.listed:
        inner = contiguous(shape[1:])
        return (-(-prod(shape[1:]) // _ALIGNED) * _ALIGNED, *inner)
    if argument.layout == _EXPANDED:
        return (0,) * len(shape)
    if argument.layout == _CHANNELS_LAST:
        last = contiguous((shape[0], *shape[2:], shape[1]))
        return (last[0], last[-1], *last[1:-1])
    if match := _STRIDES.fullmatch(argument.layout):
        return tuple(shapes.evaluate(text, dims) for text in match[1].split(","))
    return contiguous(shape)


def contiguous(shape: Sizes) -> Sizes:
    """The strides of a contiguous tensor."""
    found: list[int] = []
    step = 1
    for extent in reversed(shape):
        found.append(step)
        step *= max(extent, 1)
    return tuple(reversed(found))


def span(shape: Sizes, steps: Sizes) -> int:
    """The number of elements from the first to the last one; 0 for an empty tensor."""
    if not prod(shape):
        return 0
    return 1 + sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True))


def fits(shape: Sizes, steps: Sizes, wanted: Sizes, layout: str) -> bool:
    """Whether a tensor with these strides satisfies the ``wanted`` ones.

    The stride of an axis with one element does not matter.
    """
    if layout == ANY:
        return True
    if layout == DENSE:
        axes = [(step, extent) for extent, step in zip(shape, steps, strict=True) if extent > 1]
        step = 1
        for found, extent in sorted(axes):
            if found != step:
                return False
            step *= extent
        return True
    return all(
        extent <= 1 or step == other
        for extent, step, other in zip(shape, steps, wanted, strict=True)
    )


@dataclass(frozen=True)
class Pieces:
    """The memory of a tensor as pieces without gaps.

    Attributes:
        run: elements of each piece.
        outer: extent and stride of the axes along which there are several, the outermost first.
        strides: those of the tensor once its pieces lie one after another.
    """

    run: int
    outer: tuple[tuple[int, int], ...]
    strides: Sizes

    @classmethod
    def of(cls, shape: Sizes, steps: Sizes) -> Pieces:
        """As few pieces as can be; what is repeated along an axis of stride 0 is read again."""
        axes = [axis for axis, extent in enumerate(shape) if extent > 1]
        axes.sort(key=lambda axis: (steps[axis] != 0, -steps[axis]))
        apart, outer, run = [1] * len(shape), list[tuple[int, int]](), 1
        placed = 1
        for axis in reversed(axes):
            apart[axis] = placed
            placed *= shape[axis]
            if not outer and steps[axis] == run:
                run = placed
            else:
                outer.insert(0, (shape[axis], steps[axis]))
        return cls(run, tuple(outer), tuple(apart))

    @property
    def count(self) -> int:
        """The number of pieces."""
        return prod(extent for extent, _ in self.outer)

    def starts(self) -> Iterator[int]:
        """The first element of each piece, in their order."""
        steps = [step for _, step in self.outer]
        for place in product(*(range(extent) for extent, _ in self.outer)):
            yield sum(index * step for index, step in zip(place, steps, strict=True))
