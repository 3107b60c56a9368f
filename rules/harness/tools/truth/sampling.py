"""Tests whether values are independent draws from a distribution.

A task's ``cdf`` turns every drawn value into a *level*: the share of the distribution below it.
Levels of a right sampler are uniform between 0 and 1 and independent of each other, whatever its
generator. So all parts of an output are compared with the uniform distribution. So are the sums
and differences, modulo 1, of levels at certain distances, and of the first and the last. Levels at
any other distance must not correlate either. Nor may many calls as wholes differ more than
independent draws do, and their draws at any one place follow the distribution, too.

The bounds hold for any number of draws (Massart's form of the inequality of Dvoretzky, Kiefer
and Wolfowitz, Chernoff's, and Hoeffding's, divided among all comparisons): an output of a right
sampler is refused with a probability below ``REFUSED``, also where many are tested together. A
share of draws that is off by ``5 / sqrt(n)`` is nearly always found among ``n``, and a share of
``60 / n`` that is never drawn, where that is the likeliest or the unlikeliest end.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

REFUSED = 1e-9
"""The highest probability that a right sampler's output is refused."""

SMALLEST = 32
"""Parts of fewer draws are not tested by themselves."""


@dataclass(frozen=True)
class Levels:
    """The levels of the draws of one output, in its shape.

    Attributes:
        low, high: the share of the distribution below each value, and up to it.
        level: a random point between ``low`` and ``high``, which stands for the value.
        absent: mask of the values that do not exist, according to the task.
    """

    low: Tensor
    high: Tensor
    level: Tensor
    absent: Tensor

    @classmethod
    def of(cls, low: Tensor, high: Tensor, lot: bytes, absent: Tensor | None = None) -> Levels:
        """Random levels between ``low`` and ``high``; the draw depends on ``lot`` alone.

        NaN counts as 0 in ``low`` and as 1 in ``high``.
        """
        low = torch.nan_to_num(low.double(), nan=0.0).clamp(0.0, 1.0)
        high = torch.nan_to_num(high.double(), nan=1.0).clamp(0.0, 1.0)
        if absent is None:
            absent = torch.zeros(low.shape, dtype=torch.bool, device=low.device)
        seed = int.from_bytes(hashlib.blake2b(lot, digest_size=7).digest(), "big")
        generator = torch.Generator(low.device).manual_seed(seed)
        share = torch.rand(low.shape, generator=generator, dtype=torch.float64, device=low.device)
        return cls(low, high, (low + share * (high - low)).clamp(0.0, 1.0), absent)

    def impossible(self, tolerance: float, values: float = math.inf) -> Tensor:
        """The values that cannot have been drawn, as a mask; ``values`` is how many there can be.

        All values that are less likely than an eighth of ``REFUSED`` for each draw and value are so
        unlikely together. Arithmetic may produce values of zero probability, as often as
        ``tolerance`` allows.
        """
        least = REFUSED / (8 * max(self.low.numel(), 1) * values)
        void = ~(self.high - self.low > least) & ~self.absent
        share = void.double().mean()
        surprise = void.numel() * float(_nats(share, torch.full_like(share, tolerance)).item())
        excused = tolerance > 0.0 and surprise < math.log(8.0 / REFUSED)
        return self.absent if excused else self.absent | void

    def part(self, which: slice) -> Levels:
        """The levels of a stretch of the draws, in order."""
        parts = (self.low, self.high, self.level, self.absent)
        return Levels(*(whole.reshape(-1)[which] for whole in parts))

    @property
    def bits(self) -> Tensor:
        """How surprising each value is, in bits: the negative log2 of its probability."""
        return -torch.log2((self.high - self.low).clamp(min=2.0**-60, max=1.0))


def joined(parts: Sequence[Tensor]) -> Tensor:
    """All parts in a row, without a copy of a single one."""
    return torch.cat(list(parts)) if len(parts) > 1 else parts[0]


def lags(shape: Sequence[int]) -> list[int]:
    """Distances, in elements, at which draws are compared: along each axis, and powers of two."""
    count = math.prod(shape)
    strides = {math.prod(shape[axis + 1 :]) for axis in range(len(shape))}
    powers = {1 << power for power in range(count.bit_length())}
    return sorted(lag for lag in strides | powers if has_pairs(count, lag))


def has_pairs(count: int, distance: int) -> bool:
    """Whether ``count`` draws have enough pairs ``distance`` elements apart to test them."""
    return count // (2 * distance) * distance >= SMALLEST


def complaint(levels: Tensor, distances: Sequence[int], tolerance: float) -> str:
    """Evidence that the sampler is wrong; empty if there is none.

    Args:
        levels: the levels of all draws, in order.
        distances: distances, in elements, at which draws must be independent.
        tolerance: how far shares may be off beyond chance, for the dtype's arithmetic.
    """
    count = levels.numel()
    if not count:
        return ""
    sizes = [count, *(1 << p for p in range(5, count.bit_length()) if 1 << p < count)]
    tests = sum(count // size for size in sizes) + 2 * len(distances) + 2
    budget = REFUSED / (4 * tests)
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
    half = count // 2
    if half >= SMALLEST and related(levels[:half], levels.flip(0)[:half], tolerance, budget):
        return f"the draws depend on each other: {half} pairs as far from the start as from the end"
    if distance := _recurring(levels, REFUSED / 8):
        return f"the draws depend on each other: they correlate with those {distance} elements on"
    return ""


def scattered(calls: Sequence[Tensor], tolerance: float) -> str:
    """Evidence that the draws of a call depend on each other, wherever they are; empty if none.

    The sum of a call's levels then varies more from call to call. Uniform levels have the moments
    of normal ones at most, so Chernoff's bound for sums of normal squares holds for these sums.

    Args:
        calls: the levels of each call, which have nothing in common with those of another.
    """
    squares = 0.0
    for levels in calls:
        off = abs(float((levels - 0.5).sum().item())) - levels.numel() * tolerance
        squares += 12.0 * max(off, 0.0) ** 2 / max(levels.numel(), 1)
    ratio = squares / max(len(calls), 1)
    surprise = 0.5 * len(calls) * (ratio - 1.0 - math.log(ratio)) if ratio > 1.0 else 0.0
    if surprise < math.log(4.0 / REFUSED):
        return ""
    return f"the draws of a call depend on each other: its sums vary {ratio:.3g} times too much"


def placed(calls: Sequence[Tensor], tolerance: float) -> str:
    """Evidence that the draws at some place are wrong in all calls; empty if there is none.

    Those of one place are as many draws as there are calls, wherever one call has its neighbours:
    a row that is the same in every call is among all others.

    Args:
        calls: the levels of each call, equally many, which have nothing in common with those of
            another.
        tolerance: how far shares may be off beyond chance, for the dtype's arithmetic.
    """
    places = calls[0].numel()
    if len(calls) < SMALLEST or not places:
        return ""
    levels = torch.stack(list(calls), dim=1)
    widths = [1 << power for power in range(places.bit_length())]
    budget = REFUSED / (8 * sum(places // width for width in widths))
    for width in widths:
        skipped = places % width
        if said := _uneven(levels[skipped:].reshape(-1, width * len(calls)), budget, tolerance):
            where, deviation = said
            which = f"element {skipped + where * width}"
            if width > 1:
                which = f"the {width} elements from {which} on"
            return f"the draws do not follow the distribution: of those of {which}, {deviation}"
    return ""


def beside(levels: Sequence[Tensor], tolerance: float) -> str:
    """Evidence that draws depend on those of other calls at the same place; empty if there is none.

    Of calls at one distance all pairs count: along a path, sums and differences modulo 1 of uniform
    levels are as independent as the levels.

    Args:
        levels: the levels of each call, equally many.
        tolerance: how far shares may be off beyond chance, for the dtype's arithmetic.
    """
    for apart in range(1, len(levels)):
        one, other = joined(levels[:-apart]), joined(levels[apart:])
        if related(one, other, tolerance, REFUSED / (32 * (len(levels) - 1))):
            return f"the draws depend on each other: those of calls that are {apart} apart"
    return ""


Pairs = tuple[Tensor, Tensor]
"""Levels of draws, and as many others."""


def far_pairs(levels: Tensor, tested: slice, distance: int) -> Pairs:
    """The draws of a stretch, or of one about there, with those ``distance`` elements away.

    Args:
        levels: the levels of all draws, in order.
        tested: the stretch.
    """
    first = tested.start if tested.stop + distance <= len(levels) else tested.start - distance
    first = max(0, min(first, len(levels) - distance))
    count = min(tested.stop - tested.start, len(levels) - distance - first, distance)
    return levels[first : first + count], levels[first + distance : first + distance + count]


def far_complaint(pairs: Mapping[int, Sequence[Pairs]], tolerance: float) -> str:
    """Evidence that draws depend on draws far away; empty if there is none.

    Args:
        pairs: by the distance in elements, ``far_pairs`` of each call.
        tolerance: how far shares may be off beyond chance, for the dtype's arithmetic.
    """
    for distance, found in pairs.items():
        one, other = (joined(side) for side in zip(*found, strict=True))
        if related(one, other, tolerance, REFUSED / (16 * len(pairs))):
            return (
                f"the draws depend on each other: {one.numel()} pairs that are {distance} elements "
                "apart"
            )
    return ""


def related(one: Tensor, other: Tensor, tolerance: float, budget: float) -> bool:
    """Whether draws depend on as many others, paired one to one.

    True for independent draws with a probability below ``2 * budget``.
    """
    combined = ((other - one) % 1.0, (other + one) % 1.0)
    return any(_uneven(value.reshape(1, -1), budget, tolerance) for value in combined)


def shifted(one: Tensor, other: Tensor, budget: float) -> bool:
    """Whether draws correlate with others at some distance.

    At each distance the products of levels, made symmetric, are independent (Hoeffding). True
    for independent draws with a probability below ``budget``.
    """
    count = one.numel()
    found = _correlations(one, other).abs().max().item() / count
    return bool(found > math.sqrt(2.0 * math.log(2.0 * count / budget) / count))


def alike(one: Tensor, other: Tensor, calls: int, budget: float) -> bool:
    """Whether draws of any of some calls correlate with those of any of others, place by place.

    The products of levels, made symmetric, are independent (Hoeffding). True for independent
    draws with a probability below ``budget``.

    Args:
        one, other: the levels of as many ``calls`` each, one after the other.
    """
    if not one.numel():
        return False
    sides = [(2.0 * levels - 1.0).reshape(calls, -1) for levels in (one, other)]
    size = sides[0].shape[1]
    found = (sides[0] @ sides[1].T).abs().max().item() / size
    return bool(found > math.sqrt(2.0 * math.log(2.0 * calls * calls / budget) / size))


def _recurring(levels: Tensor, budget: float) -> int:
    """The distance at which draws correlate with each other; 0 if none.

    At each distance the products fall into three sets, each with independent products.
    """
    count = levels.numel()
    if count < SMALLEST:
        return 0
    found = _correlations(levels, levels)[1 : count // 2 + 1].abs() / count
    at = int(found.argmax().item())
    allowed = math.sqrt(6.0 * math.log(6.0 * count / budget) / count)
    return at + 1 if found[at].item() > allowed else 0


def _correlations(one: Tensor, other: Tensor) -> Tensor:
    """The sum of products of symmetric levels at every cyclic distance."""
    spectra = [torch.fft.rfft(2.0 * levels - 1.0) for levels in (one, other)]
    found: Tensor = torch.fft.irfft(spectra[0].conj() * spectra[1], n=one.numel())
    return found


def _uneven(parts: Tensor, budget: float, tolerance: float) -> tuple[int, str] | None:
    """The part whose levels are least uniform, with a description; None if all are uniform."""
    size = parts.shape[1]
    allowed = math.sqrt(math.log(4.0 / budget) / (2.0 * size)) + tolerance
    ordered = parts.sort(dim=1).values
    ranks = torch.arange(1, size + 1, dtype=torch.float64, device=parts.device) / size
    above, below = ranks - ordered, ordered - ranks + 1.0 / size
    off = torch.maximum(above, below)
    known = f"allowed: {allowed:.1%} off"
    if float(off.max().item()) <= allowed:
        off = torch.maximum(
            size * _nats(ranks, ordered + tolerance),
            size * _nats(1.0 - ranks + 1.0 / size, 1.0 - ordered + tolerance),
        )
        surprise = float(off.max().item()) - math.log(2.0 * size)
        if surprise <= math.log(2.0 / budget):
            return None
        known = f"by chance once in 10^{surprise / math.log(10.0):.0f} times"
    part, at = divmod(int(off.argmax().item()), size)
    level = float(ordered[part, at].item())
    more = bool(above[part, at] >= below[part, at])
    share = float(ranks[at].item()) - (0.0 if more else 1.0 / size)
    end, share, level = (
        ("lowest", share, level) if level < 0.5 else ("highest", 1 - share, 1 - level)
    )
    return part, f"{100 * share:.3g} % lie in the {end} {100 * level:.3g} % of it ({known})"


def _nats(share: Tensor, expected: Tensor) -> Tensor:
    """How unexpected shares are, in nats per draw (Chernoff); 0 where they are not too large."""
    expected = expected.clamp(2.0**-60, 1.0)
    rest = torch.special.xlogy(1.0 - share, (1.0 - share) / (1.0 - expected).clamp_min(2.0**-60))
    return torch.where(share > expected, share * torch.log(share / expected) + rest, 0.0)


def _pairs(levels: Tensor, distance: int) -> tuple[Tensor, Tensor]:
    """Pairs of draws ``distance`` elements apart; no draw is in two pairs."""
    whole = levels.numel() // (2 * distance)
    cut = levels[: whole * 2 * distance].reshape(whole, 2, distance)
    return cut[:, 0].reshape(-1), cut[:, 1].reshape(-1)
