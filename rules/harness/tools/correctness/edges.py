"""Sizes at which kernels break: one, primes, one past a power of two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from base import scalar_ranges
from base.program import Config
from base.sampler import Dims, Ground, filled, settled
from base.seeds import Stream
from base.spec import config_name

VERSION = 1
_ATTEMPTS = 100
_PRIMES = (2, 3, 5, 7, 13, 31, 61, 127, 251, 509, 1021, 2039, 4093, 8191, 16381, 32749, 65521)
_POWERS = tuple((1 << power) + 1 for power in range(1, 20))


def edges(ground: Ground, salt: str, count: int) -> list[Config]:
    """Up to ``count`` configs at the edges of the space, none of them visible.

    First all dims at their least, then each kind in turn; dtypes in rotation. The same for all
    candidates of a task, so that their verdicts can be compared.
    """
    stream = Stream("edges", VERSION, salt, ground.identity())
    seen = [(config.dtype, dict(config.dims)) for config in ground.visible]
    made: list[Config] = []
    for index in range(count):
        dtype = ground.space.dtypes[index % len(ground.space.dtypes)]
        propose = _least if index < len(ground.space.dtypes) else _KINDS[index % len(_KINDS)]
        for _ in range(_ATTEMPTS):
            dims = settled(ground, propose(ground, stream))
            if ground.fits(dims) and (dtype, dims) not in seen:
                seen.append((dtype, dims))
                varied = scalar_ranges.drawn(ground.space.scalars, stream)
                scalars = {**dict(ground.signature.scalars), **varied}
                name = config_name(dtype, dims, scalars=varied)
                made.append(Config(name, dims, dtype, scalars))
                break
    return made


def reduced(config: Config, ground: Ground, elements: int) -> Config:
    """``config`` with its largest dims halved until no tensor exceeds ``elements``."""
    small = replace(ground, elements=elements)
    lows = {name: low for name, (low, _) in ground.space.dims.items()}
    dims = dict(config.dims)
    while not small.holds(dims):
        larger = [name for name in dims if dims[name] > lows[name]]
        if not larger:
            return config
        large = max(larger, key=dims.__getitem__)
        dims[large] = max(dims[large] // 2, lows[large])
    dims = settled(small, dims)
    if not small.fits(dims):
        return config
    return replace(config, name=config_name(config.dtype, dims, config.absent), dims=dims)


def _least(ground: Ground, _: Stream) -> Dims:
    return ground.least()


def _from(values: tuple[int, ...]) -> Callable[[Ground, Stream], Dims]:
    def propose(ground: Ground, stream: Stream) -> Dims:
        def choose(_: str, low: int, high: int) -> int:
            usable = [value for value in values if low <= value <= high]
            return stream.choice(usable) if usable else low

        return filled(ground, stream, choose)

    return propose


def _one_dim_least(ground: Ground, stream: Stream) -> Dims:
    """One dim at its least, the others at random."""
    free = ground.free()
    least = stream.choice(free) if free else ""

    def choose(name: str, low: int, high: int) -> int:
        return low if name == least else stream.spread(low, high)

    return filled(ground, stream, choose)


_KINDS: tuple[Callable[[Ground, Stream], Dims], ...] = (
    _from(_PRIMES),
    _from(_POWERS),
    _one_dim_least,
)
