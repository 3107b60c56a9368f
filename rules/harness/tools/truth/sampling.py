"""Whether values were drawn from a distribution, each on its own.

A task's ``cdf`` turns every drawn value into a *level*: how much of the distribution lies below
it. Levels of a right sampler are uniform between 0 and 1 and independent of each other, whatever
its generator. So all parts of an output are compared with the uniform distribution, and so are
sums and differences of levels that lie some way apart, modulo 1. Levels at any other distance
must not go along with each other either.

The bounds hold for any number of draws (Massart's form of the inequality of Dvoretzky, Kiefer
and Wolfowitz, and Hoeffding's, divided among all comparisons of one output): a right sampler is
refused with a probability below ``REFUSED``. A share of draws that is wrong by ``5 / sqrt(n)`` is
nearly always found among ``n``.
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
        absent: which values the task says there are not.
    """

    low: Tensor
    high: Tensor
    level: Tensor
    absent: Tensor

    @classmethod
    def of(cls, low: Tensor, high: Tensor, lot: bytes, absent: Tensor | None = None) -> Levels:
        """Levels between ``low`` and ``high``, by a lot that depends on ``lot`` alone.

        NaN stands for nothing below a value, and for everything up to it.
        """
        low = torch.nan_to_num(low.double(), nan=0.0).clamp(0.0, 1.0)
        high = torch.nan_to_num(high.double(), nan=1.0).clamp(0.0, 1.0)
        if absent is None:
            absent = torch.zeros(low.shape, dtype=torch.bool, device=low.device)
        seed = int.from_bytes(hashlib.blake2b(lot, digest_size=7).digest(), "big")
        generator = torch.Generator(low.device).manual_seed(seed)
        share = torch.rand(low.shape, generator=generator, dtype=torch.float64, device=low.device)
        return cls(low, high, (low + share * (high - low)).clamp(0.0, 1.0), absent)

    def impossible(self, tolerance: float) -> Tensor:
        """The values that cannot have been drawn, as a mask.

        Arithmetic may end up at a value of no probability, as often as ``tolerance`` lets it.
        """
        void = ~(self.low < self.high) & ~self.absent
        count, total = int(void.sum().item()), void.numel()
        excused = count and total * _surprise(count / total, tolerance) < -math.log(REFUSED)
        return self.absent if excused else self.absent | void

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
    """Evidence that the sampler is wrong; empty if there is none.

    Args:
        levels: of all draws, one after the other.
        distances: at which draws should have nothing at all to do with each other.
        tolerance: by how much shares may be off beside chance: the arithmetic of the dtype.
    """
    count = levels.numel()
    if not count:
        return ""
    sizes = [count, *(1 << p for p in range(5, count.bit_length()) if 1 << p < count)]
    tests = sum(count // size for size in sizes) + 2 * len(distances)
    budget = REFUSED / (2 * tests)
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
                f"the draws depend on each other: {one.numel()} pairs that are "
                f"{distance} elements apart"
            )
    if distance := _recurring(levels, REFUSED / 2):
        return f"the draws depend on each other: they correlate with those {distance} elements on"
    return ""


def related(one: Tensor, other: Tensor, tolerance: float, budget: float) -> bool:
    """Whether draws depend on as many others, paired one to one.

    Of independent draws that is said with a probability below ``2 * budget``.
    """
    combined = ((other - one) % 1.0, (other + one) % 1.0)
    return any(_uneven(value.reshape(1, -1), budget, tolerance) for value in combined)


def shifted(one: Tensor, other: Tensor, budget: float) -> bool:
    """Whether draws correlate with others at some distance.

    At each distance the products of levels, made symmetric, are independent (Hoeffding). Of
    independent draws it is said with a probability below ``budget``.
    """
    count = one.numel()
    found = _correlations(one, other).abs().max().item() / count
    return bool(found > math.sqrt(2.0 * math.log(2.0 * count / budget) / count))


def _recurring(levels: Tensor, budget: float) -> int:
    """The distance at which draws correlate with each other; 0 if none.

    At each distance the products fall into three sets, each of independent ones.
    """
    count = levels.numel()
    if count < SMALLEST:
        return 0
    found = _correlations(levels, levels)[1 : count // 2 + 1].abs() / count
    at = int(found.argmax().item())
    allowed = math.sqrt(6.0 * math.log(6.0 * count / budget) / count)
    return at + 1 if found[at].item() > allowed else 0


def _correlations(one: Tensor, other: Tensor) -> Tensor:
    """The sum of products of symmetric levels at every distance, going round."""
    spectra = [torch.fft.rfft(2.0 * levels - 1.0) for levels in (one, other)]
    found: Tensor = torch.fft.irfft(spectra[0].conj() * spectra[1], n=one.numel())
    return found


def _uneven(parts: Tensor, budget: float, tolerance: float) -> tuple[int, str] | None:
    """The first part whose levels are not uniform, with a description."""
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


def _surprise(share: float, expected: float) -> float:
    """How unexpected a share is, in nats for each draw (Chernoff); 0 if it is not too large."""
    if share <= expected:
        return 0.0
    if expected <= 0.0:
        return math.inf
    rest = (1.0 - share) * math.log((1.0 - share) / (1.0 - expected)) if share < 1.0 else 0.0
    return share * math.log(share / expected) + rest
