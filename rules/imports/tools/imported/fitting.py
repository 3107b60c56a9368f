"""Fits integer expressions, as declarations have them, to sizes at some points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Point:
    """The size of an axis for some values of the dims."""

    dims: Mapping[str, int]
    size: int


def fit_axis(points: Sequence[Point]) -> str | None:
    """The simplest known expression through all points; None if there is none."""
    candidates = (text for text in _candidates(points) if _holds(text, points))
    return next(candidates, None)


def evaluate(text: str, dims: Mapping[str, int]) -> int:
    """The value of an expression that was made here."""
    return int(eval(text, {"__builtins__": {}}, dict(dims)))  # noqa: S307 - made here


def _holds(text: str, points: Sequence[Point]) -> bool:
    return all(evaluate(text, point.dims) == point.size for point in points)


def _candidates(points: Sequence[Point]) -> Iterator[str]:
    base = points[0]
    yield str(base.size)
    moving = [name for name in base.dims if _follows(name, points)]
    if not moving:
        return
    if len(moving) == 1:
        yield from _of_one(moving[0], base.dims[moving[0]], base.size, points)
        return
    product, total = prod(base.dims[name] for name in moving), sum(base.dims[n] for n in moving)
    if base.size % product == 0:
        yield _times(base.size // product, " * ".join(moving))
    yield _plus(" + ".join(moving), base.size - total)
    yield from _sums(moving, base, points)
    yield from _products(moving, base, points)


def _follows(name: str, points: Sequence[Point]) -> bool:
    """Whether the size differs where this dim alone differs from the first point."""
    base = points[0]
    return any(
        point.size != base.size
        and all((point.dims[n] == v) is (n != name) for n, v in base.dims.items())
        for point in points
    )


def _of_one(name: str, value: int, size: int, points: Sequence[Point]) -> Iterator[str]:
    base = points[0]
    alone = _alone(name, base, points)
    other = next(p for p in alone if p.size != size)
    rise, run = other.size - size, other.dims[name] - value
    if rise % run == 0:
        yield _plus(_times(rise // run, name), size - rise // run * value)
    yield _plus(_times(1, f"{name} * {name}"), size - value * value)
    for divisor in (*range(2, 17), 32, 64):
        for offset in sorted(range(-64, 65), key=abs):
            if offset % divisor == 0 and offset:
                continue
            inner = _plus(name, offset)
            text = f"({inner}) // {divisor}" if offset else f"{name} // {divisor}"
            first = (value + offset) // divisor
            yield _plus(text, size - first)
            if first > 1 and size % first == 0:
                yield f"{size // first} * ({text})"


def _sums(moving: Sequence[str], base: Point, points: Sequence[Point]) -> Iterator[str]:
    """Each dim times a factor: found where that dim moves alone."""
    terms, rest = [], base.size
    for name in moving:
        other = next(p for p in _alone(name, base, points) if p.size != base.size)
        rise, run = other.size - base.size, other.dims[name] - base.dims[name]
        if rise % run or rise // run < 1:
            return
        terms.append(_times(rise // run, name))
        rest -= rise // run * base.dims[name]
    yield _plus(" + ".join(terms), rest)


def _alone(name: str, base: Point, points: Sequence[Point]) -> list[Point]:
    """The points where no other dim differs from the first point."""
    return [p for p in points if all(p.dims[n] == v for n, v in base.dims.items() if n != name)]


def _products(moving: Sequence[str], base: Point, points: Sequence[Point]) -> Iterator[str]:
    """One factor for each dim: fitted where that dim moves alone."""
    factors = []
    for name in moving:
        alone = _alone(name, base, points)
        shapes = (
            (f"(({_plus(name, offset)}) // {divisor} + {add})", divisor, offset, add)
            for divisor in (1, 2, 3, 4, 8)
            for offset in range(-8, 9)
            for add in (0, 1)
        )
        fitting = (
            text
            for text, divisor, offset, add in shapes
            if (first := (base.dims[name] + offset) // divisor + add) > 0
            and all(
                p.size * first == base.size * ((p.dims[name] + offset) // divisor + add)
                for p in alone
            )
        )
        factors.append(next(fitting, name))
    value = prod(evaluate(factor, base.dims) for factor in factors)
    if value and base.size % value == 0:
        yield _times(base.size // value, " * ".join(factors))


def _times(factor: int, text: str) -> str:
    return text if factor == 1 else f"{factor} * {text}"


def _plus(text: str, constant: int) -> str:
    if not constant:
        return text
    return f"{text} + {constant}" if constant > 0 else f"{text} - {-constant}"
