"""What to learn from: sizes that are quick to compute, and settings that rounding leaves alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from imported.boundary import LeftOutError
from imported.shape_space import Space

MODEST, COMPUTED = 64, 1 << 20
"""Larger sizes are halved until the arguments together have so many elements."""

Settings = dict[str, Any]
T = TypeVar("T")


def starting_points(
    values: Sequence[int], device: str, elements: Callable[[Sequence[int]], int]
) -> Iterator[Sequence[int]]:
    """Sizes to try; where they are computed with, small ones come before large ones.

    ``elements`` counts those of a call's arguments.
    """
    if device != "meta":
        small = [*values]
        with contextlib.suppress(Exception):  # whatever the benchmark's code raises without data
            while max(small, default=0) > MODEST and elements(small) > COMPUTED:
                small = [value // 2 if value > MODEST else value for value in small]
        if small != [*values]:
            yield small
    yield values


def with_originals(space: Space, values: Sequence[int]) -> Space:
    """The space with the benchmark's sizes as the original ones, whatever it was learnt from."""
    originals = [(dim, values[dim.members[0]]) for dim in space.dims]
    dims = (replace(d, original=v, high=max(v, d.high)) for d, v in originals)
    return replace(space, dims=tuple(dims))


def first_steady(
    choices: Sequence[Settings], learn_from: Callable[[Settings], T]
) -> tuple[T, list[Settings]]:
    """What is learnt from the first of the settings whose results rounding does not decide.

    Returns it with all settings, those first. Raises the first LeftOutError if none is left.
    """
    errors: list[LeftOutError] = []
    for choice in choices:
        try:
            return learn_from(choice), [choice, *(c for c in choices if c is not choice)]
        except LeftOutError as error:
            errors.append(error)
            if error.reason != "ILL_CONDITIONED":
                break
    raise errors[0]
