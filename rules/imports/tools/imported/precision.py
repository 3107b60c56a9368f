"""Sizes at which single precision can tell a right result from a wrong one.

With small sizes, a norm may take the mean of only two values. In single precision, a deep network's
results from such means are random, and the original itself differs from its double precision.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from imported.boundary import LeftOutError
from imported.shape_space import Space

ATOL, RTOL = 1e-5, 1e-4
"""The judge's tolerance of f32: ``ATOL`` times the root mean square, and ``RTOL``."""

ENOUGH = 4.0
"""How far the original may be off, in tolerances. The judge allows four times as much."""

MOST = ENOUGH * RTOL / ATOL
"""Beyond this a task is left out. Up to it, its own tolerance is wider: at most twice ``RTOL``."""

LONGEST = 1.0
"""Seconds of computing, after which sizes that are good enough are not raised further."""

SINGLE = frozenset({torch.float32})
HALF = SINGLE | {torch.float16, torch.bfloat16}

APART = 0.1
"""Beyond this share of the values' size, two results in half precision are not the same."""

DRAWS, DRAWING = 64, 5.0
"""The most draws, and their seconds, to see whether rounding decides about results."""

Results = Mapping[str, Tensor]
Sizes = Mapping[str, int]
Excess = Callable[[Sizes], float]
"""How far off the original is for some sizes, in tolerances. Raises LeftOutError."""


def excess(results: Mapping[str, Tensor], exact: Mapping[str, Tensor]) -> float:
    """The largest error of floating-point ``results``, in tolerances.

    Values that are not finite in double precision are not looked at.
    """
    worst = 0.0
    for name, truth in exact.items():
        if not truth.is_floating_point() or not truth.numel():
            continue
        known = torch.isfinite(truth)
        wanted, got = truth[known].double(), results[name][known].double()
        if not wanted.numel():
            continue
        allowed = ATOL * wanted.square().mean().sqrt() + RTOL * wanted.abs()
        over = torch.where(got == wanted, 0.0, (got - wanted).abs() / allowed)
        worst = max(worst, float(over.nan_to_num(nan=torch.inf).max()))
    return worst


def doubled(
    given: Mapping[str, Tensor], kinds: Container[torch.dtype] = SINGLE
) -> dict[str, Tensor]:
    """The tensors of some element types as doubles, all others as they are."""
    return {n: t.double() if t.dtype in kinds else t for n, t in given.items()}


def check_steady(results: Results, exact: Results) -> None:
    """Raise LeftOutError where rounding to half precision leads to another result altogether.

    So it is where the largest of some values are picked, and two are nearly the same.
    """
    for name, truth in exact.items():
        if results[name].dtype not in {torch.float16, torch.bfloat16} or not truth.numel():
            continue
        wanted, got = truth.double(), results[name].double()
        off = (got - wanted).abs() / (wanted.square().mean().sqrt() + wanted.abs())
        if float(off.nan_to_num().max()) > APART:
            what = "rounding to half precision decides which values its results are made of"
            raise LeftOutError("ILL_CONDITIONED", what)


def check_draws(both: Callable[[int], tuple[Results, Results]], given: Iterable[Tensor]) -> None:
    """Look at many draws with ``check_steady``, where inputs ``given`` are in half precision.

    ``both`` has the results for a seed, and the exact ones. Nothing is said of what takes no
    doubles. Raises LeftOutError.
    """
    if not any(tensor.dtype in HALF - SINGLE for tensor in given):
        return
    began = time.process_time()
    for seed in range(DRAWS):
        with contextlib.suppress(RuntimeError, TypeError):
            check_steady(*both(seed))
        if time.process_time() - began > DRAWING:
            break


def precise(space: Space, excess_at: Excess) -> Space:
    """The space with small sizes for which the original is as good as single precision allows.

    Its least sizes rise with them. Where it is still off at the largest sizes that are quick
    enough, the tolerance is widened. Raises LeftOutError where that would not be enough.
    """
    try:
        best = excess_at(space.small)
    except (RuntimeError, TypeError):  # it has its own tensors that stay in single precision
        return space
    sizes: Sizes = space.small
    larger = _larger(space)
    while best > ENOUGH and (tried := next(larger, None)) is not None:
        began = time.process_time()
        found = _excess_or_none(excess_at, tried)
        if found is not None and found < best:
            best, sizes = found, tried
        if best <= MOST and time.process_time() - began > LONGEST:
            break
    if best > MOST:
        what = f"rounding alone moves its results by {best:.2g} times the tolerance on a CPU"
        raise LeftOutError("ILL_CONDITIONED", what)
    return _raised(space, sizes, best)


def _larger(space: Space) -> Iterator[Sizes]:
    """All sizes, doubled repeatedly up to the benchmark's own."""
    sizes: Sizes = space.small
    while any(sizes[dim.name] < dim.original for dim in space.dims):
        sizes = {
            d.name: max(d.small, min(d.original, 2 * sizes[d.name]) // d.step * d.step)
            for d in space.dims
        }
        yield sizes


def _excess_or_none(excess_at: Excess, sizes: Sizes) -> float | None:
    with contextlib.suppress(RuntimeError, TypeError):
        return excess_at(sizes)
    return None


def _raised(space: Space, sizes: Sizes, best: float) -> Space:
    dims = tuple(
        d if sizes[d.name] == d.small else replace(d, small=sizes[d.name], low=sizes[d.name])
        for d in space.dims
    )
    return replace(space, dims=dims, widened=max(1.0, best / ENOUGH))
