"""Whether values were drawn from a distribution, each on its own.

A task's ``cdf`` turns every drawn value into a *level*: how much of the distribution lies below
it. Levels of a right sampler are uniform between 0 and 1 and independent of each other, whatever
its generator. So all parts of an output are compared with the uniform distribution, and so are
sums and differences of levels that lie some way apart, modulo 1.

The bounds hold for any number of draws (Massart's form of the inequality of Dvoretzky, Kiefer
and Wolfowitz, divided among all comparisons of one output): a right sampler is refused with a
probability below ``REFUSED``. A share of draws that is wrong by ``5 / sqrt(n)`` is nearly always
found among ``n``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

REFUSED = 1e-9
"""How probable it is at most that a right sampler's output is refused."""

SMALLEST = 32
"""Parts of fewer draws are not looked at by themselves."""


@dataclass(frozen=True)
class Levels:
    """What is known of the draws of one output, in its shape.

    Attributes:
        low, high: how much of the distribution lies below each value, and up to it.
        level: where in between the value is taken to be, by lot.
    """

    low: Tensor
    high: Tensor
    level: Tensor

    @classmethod
    def of(cls, low: Tensor, high: Tensor, lot: bytes) -> Levels:
        """Levels between ``low`` and ``high``, by a lot that depends on ``lot`` alone."""
        low, high = (torch.nan_to_num(bound, nan=2.0).double() for bound in (low, high))
        seed = int.from_bytes(hashlib.blake2b(lot, digest_size=7).digest(), "big")
        generator = torch.Generator(low.device).manual_seed(seed)
        share = torch.rand(low.shape, generator=generator, dtype=torch.float64, device=low.device)
        return cls(low, high, (low + share * (high - low)).clamp(0.0, 1.0))

    @property
    def impossible(self) -> Tensor:
        """Which values the distribution does not have."""
        return ~((self.low < self.high) & (self.low >= 0.0) & (self.high <= 1.0))

    @property
    def bits(self) -> Tensor:
        """How surprising each value is, as the logarithm to base 2 of its rarity."""
        return -torch.log2((self.high - self.low).clamp(min=2.0**-60, max=1.0))


def lags(shape: Sequence[int]) -> list[int]:
    """Distances, in elements, at which draws are compared: along each axis, and powers of two."""
    count = math.prod(shape)
    strides = {math.prod(shape[axis + 1 :]) for axis in range(len(shape))}
    powers = {1 << power for power in range(count.bit_length())}
    return sorted(lag for lag in strides | powers if count // (2 * lag) * lag >= SMALLEST)


def complaint(levels: Tensor, distances: Sequence[int], tolerance: float) -> str:
    """What shows that the draws are no right sampler's; empty where nothing does.

    Args:
        levels: of all draws, one after the other.
        distances: at which draws should have nothing to do with each other.
        tolerance: by how much shares may be off beside chance: the arithmetic of the dtype.
    """
    count = levels.numel()
    if not count:
        return ""
    sizes = [count, *(1 << p for p in range(5, count.bit_length()) if 1 << p < count)]
    tests = sum(count // size for size in sizes) + 2 * len(distances)
    budget = REFUSED / tests
    for size in sizes:
        if said := _uneven(levels[count % size :].reshape(-1, size), budget, tolerance):
            where, deviation = said
            first = count % size + where * size
            return (
                f"the draws do not follow the distribution: of the {size} from element {first} "
                f"on, {deviation}"
            )
    for distance in distances:
        one, other = _pairs(levels, distance)
        if related(one, other, tolerance, budget):
            return (
                f"the draws depend on each other: {one.numel()} pairs of them that are "
                f"{distance} elements apart"
            )
    return ""


def related(one: Tensor, other: Tensor, tolerance: float, budget: float = REFUSED / 2) -> bool:
    """Whether draws have something to do with as many others, each with one of them.

    Of independent draws that is said with a probability below ``2 * budget``.
    """
    combined = ((other - one) % 1.0, (other + one) % 1.0)
    return any(_uneven(value.reshape(1, -1), budget, tolerance) for value in combined)


def _uneven(parts: Tensor, budget: float, tolerance: float) -> tuple[int, str] | None:
    """The first part whose levels are not uniform, and in words how."""
    size = parts.shape[1]
    allowed = math.sqrt(math.log(2.0 / budget) / (2.0 * size)) + tolerance
    ordered = parts.sort(dim=1).values
    ranks = torch.arange(1, size + 1, dtype=torch.float64, device=parts.device) / size
    above, below = ranks - ordered, ordered - ranks + 1.0 / size
    off = torch.maximum(above, below)
    worst = off.amax(dim=1)
    part = int(worst.argmax().item())
    if float(worst[part].item()) <= allowed:
        return None
    at = int(off[part].argmax().item())
    level = float(ordered[part, at].item())
    more = bool(above[part, at] >= below[part, at])
    share = float(ranks[at].item()) - (0.0 if more else 1.0 / size)
    return part, f"{share:.1%} lie in the lowest {level:.1%} of it (allowed: {allowed:.1%} off)"


def _pairs(levels: Tensor, distance: int) -> tuple[Tensor, Tensor]:
    """Pairs of draws that are so far apart, no draw in two pairs."""
    whole = levels.numel() // (2 * distance)
    cut = levels[: whole * 2 * distance].reshape(whole, 2, distance)
    return cut[:, 0].reshape(-1), cut[:, 1].reshape(-1)
