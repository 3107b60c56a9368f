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
    longest: float,
    late: Callable[[Item, float], bool] = lambda _, __: False,
) -> list[tuple[Item, float]]:
    """The last rung, best first, each with its latest figure: larger is better.

    The first rung is measured for ``shortest`` seconds; none follows one of ``longest`` or more.
    ``measure(item, seconds)`` gives None for items that fail or are not worth measuring: each is
    out. No further measurement begins once ``late(item, seconds)`` says so: then those of the rung
    that were not reached count with their figures of the one before.
    """
    waiting: list[tuple[Item, float | None]] = [(item, None) for item in items]
    seconds = shortest
    while True:
        measured: list[tuple[Item, float]] = []
        for number, (item, _) in enumerate(waiting):
            if late(item, seconds):
                before = [(other, old) for other, old in waiting[number:] if old is not None]
                return _best_first([*measured, *before])
            figure = measure(item, seconds)
            if figure is not None:
                measured.append((item, figure))
        measured = _best_first(measured)
        if len(measured) <= FINALISTS or seconds >= longest:
            return measured
        waiting = [*measured[: max(FINALISTS, -(-len(measured) // ETA))]]
        seconds *= ETA


def _best_first(measured: list[tuple[Item, float]]) -> list[tuple[Item, float]]:
    return sorted(measured, key=lambda pair: -pair[1])
