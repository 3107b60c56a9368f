"""Sizes at which single precision can tell a right result from a wrong one.

Small sizes may leave a norm two values to take a mean of. What a deep network makes of such means
is chance in single precision, and the original itself is wrong beside its double precision.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from imported.boundary import LeftOutError
from imported.shape_space import Space

ATOL, RTOL = 1e-5, 1e-4
"""The judge's tolerance of f32: ``ATOL`` times the root mean square, and ``RTOL``."""

ENOUGH = 4.0
"""Tolerances that the original may be off by. The judge forgives four times as much."""

MOST = ENOUGH * RTOL / ATOL
"""Beyond this a task is left out. Up to it, its own tolerance is wider: at most twice ``RTOL``."""

LONGEST = 1.0
"""Seconds of computing, after which sizes that are good enough are not raised further."""

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


def doubled(given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Single precision as doubles, all else as it is."""
    return {n: t.double() if t.dtype is torch.float32 else t for n, t in given.items()}


def precise(space: Space, excess_at: Excess) -> Space:
    """The space with small sizes for which the original is as good as single precision allows.

    Its least sizes rise with them. Where it is still off at the largest sizes that are quick
    enough, the tolerance is widened. Raises LeftOutError where that would not be enough.
    """
    try:
        best = excess_at(space.small)
    except (RuntimeError, TypeError):  # it has tensors of its own that stay in single precision
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
    """All sizes doubled again and again, up to the benchmark's own."""
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
