"""The extents stage: each dim once at its declared maximum, the others at their least.

Where that takes too long, the dim is tried as long as there is time for.

A kernel that counts in 16 bits, keeps a row in shared memory or multiplies its indices in 32 bits
is right at all sizes that are cheap to try.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from base import shapes
from base.program import CandidateFault, Config
from base.sampler import Dims, Ground, settled
from base.spec import config_name, largest_tensor
from truth.judge import Case, Judge

STAGE = "extents"
SECONDS = 1.0  # seconds that one call of the baseline may take
_FIRST, _GROWTH = 64, 8  # the extents to extrapolate from
_SLOW = 0.05  # seconds of a call that depend on the extent, not only on messages
_CALLS, _MOST_CALLS = 2, 20
_PATIENCE = 2.0  # seconds for these calls
_ELEMENTS_ON_CPU = 1 << 22
_WIDE = 1 << 31  # more elements than a 32-bit index can count
_NONE = sys.maxsize  # the elements of what has no shape
_NEAR = 64  # how far the conditions of a space may lead from a size
_BYTES_AN_ELEMENT = 48  # for both sides' tensors, and the oracle's in double precision


@dataclass(frozen=True)
class Longest:
    """The configs to try, and those of the full extent that would take too long, by dim."""

    tried: Mapping[str, Config]
    left_out: Mapping[str, Config]


def longest(ground: Ground, judge: Judge, *, on_cpu: bool) -> Longest:
    """For each dim, a config in which it is as long as the task allows.

    Raises MachineFault. On ``cpu`` a dim whose blocks or programs run one after the other may take
    minutes. The baseline is timed at small extents to detect such a dim. It is then as
    long as ``SECONDS`` allow: a loop that is entered once in a small config,
    such as that of a grid's stride, goes round there too.
    """
    elements = _ELEMENTS_ON_CPU if on_cpu else ground.elements
    tried: dict[str, Config] = {}
    left_out: dict[str, Config] = {}
    for index, name in enumerate(ground.free()):
        dtype = ground.space.dtypes[index % len(ground.space.dtypes)]
        dims = settled(ground, _stretched(ground, name, elements))
        if not ground.space.contains(dims) or _elements(ground, dims) > elements:
            continue  # the conditions of the space exclude such a size
        full = _config(ground, dtype, dims)
        made = _affordable(ground, judge, full, name) if on_cpu else full
        if made:
            tried[name] = made
        if made != full:
            left_out[name] = full
    return Longest(tried, left_out)


def beyond_32_bits(ground: Ground, memory_bytes: int) -> Config | None:
    """A config whose largest tensor has more than 2³¹ elements; None if there is no room.

    All dims grow in turn, so that the size does not come from one dim alone.
    """
    if memory_bytes < _WIDE * _BYTES_AN_ELEMENT:
        return None
    dims = settled(ground, ground.least())
    name, shorter = "", dims
    while not _is_wide(ground, dims):
        grown = _grown(ground, dims)
        if grown is None:
            return None
        shorter, (name, dims) = dims, grown
    if name:
        dims = _least_wide(ground, dims, name, shorter[name])
    if not ground.space.contains(dims):
        return None
    narrow = min(ground.space.dtypes, key=lambda name: int(name.strip("bfiu")))
    return _config(ground, narrow, dims)


def _is_wide(ground: Ground, dims: Dims) -> bool:
    """Whether an index of 32 bits is too short; false for what has no shape yet."""
    return _WIDE < _elements(ground, dims) < _NONE


def _grown(ground: Ground, dims: Dims) -> tuple[str, Dims] | None:
    """The shortest dim that can be about doubled while none gets shorter, and all dims then."""
    for name in sorted(ground.free(), key=lambda name: dims[name]):
        twice, most = max(1, 2 * dims[name]), ground.space.dims[name][1]
        for found in _near(ground, dims, name, sorted({min(twice, most), min(twice + 1, most)})):
            none_shorter = all(found[other] >= extent for other, extent in dims.items())
            if found[name] > dims[name] and none_shorter:
                return name, found
    return None


def _least_wide(ground: Ground, dims: Dims, name: str, low: int) -> Dims:
    """``dims``, which are wide, with one of them as short as they stay so, above ``low``."""
    high = dims[name]
    while low + 1 < high:
        middle = (low + high) // 2
        wide = _is_wide(ground, {**dims, name: middle})
        low, high = (low, middle) if wide else (middle, high)
    near = _near(ground, dims, name, range(high, min(high + _NEAR, dims[name])))
    return next((found for found in near if _is_wide(ground, found)), dims)


def _near(ground: Ground, dims: Dims, name: str, extents: Iterable[int]) -> Iterator[Dims]:
    """Points of the space near ``dims`` with each of the ``extents`` of one dim."""
    for extent in extents:
        found = settled(ground, {**dims, name: extent})
        if ground.space.contains(found):
            yield found


def _elements(ground: Ground, dims: Dims) -> int:
    try:
        return largest_tensor(ground.signature, dims)
    except shapes.ShapeError:  # such as a window longer than its input
        return _NONE


def _stretched(ground: Ground, name: str, elements: int) -> Dims:
    """The least point of the space, with one dim as long as declared or as ``elements`` allow."""
    dims = ground.least()
    low, high = ground.space.dims[name]
    while low < high:
        middle = (low + high + 1) // 2
        if _elements(ground, {**dims, name: middle}) <= elements:
            low = middle
        else:
            high = middle - 1
    return {**dims, name: low}


def _affordable(ground: Ground, judge: Judge, config: Config, name: str) -> Config | None:
    """``config`` if the baseline will probably run it in time, or with a shorter dim ``name``.

    The time is extrapolated from shorter extents. All of them are timed, since a time may grow with
    the square of an extent; of the last step, four times as long, that is not awaited. None if even
    the first of them takes too long.
    """
    full, extent = config.dims[name], max(_FIRST, ground.space.dims[name][0])
    longest, whole = 0, True
    while extent < full:
        if (shorter := _shorter(ground, config, name, extent)) is None:
            extent *= _GROWTH
            continue
        enough = max(SECONDS * extent / full, _SLOW)
        took = _timed(judge, shorter, enough)
        if took <= SECONDS:
            longest = extent * next(times for times in (4, 2, 1) if times * took <= SECONDS)
        whole = whole and took <= enough
        if not whole and took * _GROWTH > SECONDS:
            break
        extent *= _GROWTH
    if whole or longest >= full:
        return config
    return _shorter(ground, config, name, longest) if longest else None


def _shorter(ground: Ground, config: Config, name: str, extent: int) -> Config | None:
    """``config`` with a dim of about that extent; None if the space has no such config."""
    dims = settled(ground, {**config.dims, name: extent})
    return _config(ground, config.dtype, dims) if ground.space.contains(dims) else None


def _timed(judge: Judge, config: Config, enough: float) -> float:
    """Seconds of the fastest of several baseline calls.

    More calls are tried while none takes at most ``enough``. On a busy machine any call may have
    to wait, and a dim that is left out for that reason would not be tested.
    """
    inputs, times = judge.inputs(Case(STAGE, config)), list[float]()
    while len(times) < _CALLS or (
        min(times) > enough and len(times) < _MOST_CALLS and sum(times) < _PATIENCE
    ):
        before = time.monotonic()
        try:
            judge.baseline.run(config, [inputs])
        except CandidateFault:
            return 0.0  # the case itself will show why the baseline fails
        times.append(time.monotonic() - before)
    return min(times)


def _config(ground: Ground, dtype: str, dims: Dims) -> Config:
    ordered = {name: dims[name] for name in ground.signature.dims}
    return Config(config_name(dtype, ordered), ordered, dtype, dict(ground.signature.scalars))
