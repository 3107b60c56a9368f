"""Successive halving: measure many briefly, and the best of them ever longer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

ETA = 3
"""Of how many one goes on to the next rung, which is measured as many times as long."""

FINALISTS = 2
"""How many the last rung compares."""


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
    measurement begins once ``enough`` says so: then what this rung has measured counts, or else
    the one before.
    """
    ranked: list[tuple[Item, float]] = [(item, 0.0) for item in items]
    seconds, rung = shortest, 0
    while True:
        measured: list[tuple[Item, float]] = []
        for item, _ in ranked:
            if enough():
                return _best_first(measured) if measured or not rung else ranked
            figure = measure(item, seconds)
            if figure is not None:
                measured.append((item, figure))
        measured = _best_first(measured)
        if len(measured) <= FINALISTS:
            return measured
        ranked = measured[: max(FINALISTS, -(-len(measured) // ETA))]
        seconds, rung = seconds * ETA, rung + 1


def _best_first(measured: list[tuple[Item, float]]) -> list[tuple[Item, float]]:
    return sorted(measured, key=lambda pair: -pair[1])
