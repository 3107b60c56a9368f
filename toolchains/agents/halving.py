"""Successive halving: measure many briefly, and the best of them ever longer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

ETA = 3
"""Of how many one goes on to the next rung, which is measured as many times as long."""


def choose(values: Sequence[Sequence[Item]], most: int, seed: int) -> list[tuple[Item, ...]]:
    """At most ``most`` different points of a grid, at random; all of a small one."""
    size = 1
    for axis in values:
        size *= len(axis)
    source = random.Random(seed)  # noqa: S311 - a search, no secret
    if size <= most:
        points = list(itertools.product(*values))
        source.shuffle(points)
        return points
    chosen: dict[tuple[Item, ...], None] = {}
    while len(chosen) < most:
        chosen[tuple(source.choice(axis) for axis in values)] = None
    return list(chosen)


def halve(
    items: Iterable[Item],
    measure: Callable[[Item, float], float | None],
    *,
    shortest: float,
    enough: Callable[[], bool] = lambda: False,
) -> list[tuple[Item, float]]:
    """The last rung, best first, each with its figure: larger is better.

    ``measure(item, seconds)`` gives None for what cannot be measured, which is out. No further
    measurement begins once ``enough`` says so; what was not measured in an unfinished rung
    keeps its place by the figure of the one before.
    """
    ranked: list[tuple[Item, float]] = [(item, 0.0) for item in items]
    seconds = shortest
    first = True
    while ranked and (first or len(ranked) > 1):
        measured: list[tuple[Item, float]] = []
        unmeasured: list[tuple[Item, float]] = []
        for item, before in ranked:
            if enough():
                unmeasured.append((item, before))
                continue
            figure = measure(item, seconds)
            if figure is not None:
                measured.append((item, figure))
        measured.sort(key=lambda pair: -pair[1])
        if unmeasured:
            return measured or ([] if first else unmeasured)
        ranked = measured if len(measured) <= 1 else measured[: max(1, len(measured) // ETA)]
        if len(ranked) <= 1:
            return measured
        seconds *= ETA
        first = False
    return ranked
