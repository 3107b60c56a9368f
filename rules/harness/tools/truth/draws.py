"""Remembers draws, to find those that repeat under another seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from truth.sampling import REFUSED, Levels, alike, joined, related, shifted

BLOCK = 64
BITS = 72.0
"""How surprising a block must be, in bits: right draws then repeat once in 2 ** 72 blocks."""
MOST = 1 << 18
KEPT = 4


class Draws:
    """The draws of one output over many calls.

    Keeps up to ``MOST`` blocks of ``BLOCK`` elements, counted from the end, of all calls, and
    every level of the first and the latest ``KEPT`` groups of each number of calls and draws.
    """

    def __init__(self) -> None:
        self._seeds: dict[bytes, bytes] = {}
        self._groups: dict[tuple[int, int], list[tuple[frozenset[bytes], Tensor]]] = {}

    def repeated(self, values: Tensor, levels: Levels, seed: bytes) -> str:
        """Evidence that values were drawn before, with another seed; empty if there is none."""
        first = self._repeated(values, levels, seed)
        if first is None:
            return ""
        return f"the draws from element {first} on repeat an earlier call with another seed"

    def related(self, calls: Sequence[Tensor], seeds: frozenset[bytes], tolerance: float) -> str:
        """Evidence that draws depend on those of an earlier group of calls; empty if there is none.

        Args:
            calls: the levels of each call of a group, equally many.
            seeds: theirs. Groups that share one are not compared.
            tolerance: how far shares may be off beyond chance, for the dtype's arithmetic.
        """
        level = joined(calls)
        known = self._groups.setdefault((len(calls), level.numel()), [])
        budget = REFUSED / (32 * KEPT)  # a quarter, for four comparisons with each of 2 * KEPT
        others = [other for theirs, other in known if level.numel() and seeds.isdisjoint(theirs)]
        found = any(
            related(level, other, tolerance, budget)
            or shifted(level, other, budget)
            or alike(level, other, len(calls), budget)
            for other in others
        )
        known.append((seeds, level))
        if len(known) > 2 * KEPT:
            del known[KEPT]
        return (
            "the draws correlate with those of an earlier call with another seed" if found else ""
        )

    def _repeated(self, values: Tensor, levels: Levels, seed: bytes) -> int | None:
        """The first element of a block that was drawn before with another seed; None if none."""
        size = min(BLOCK, values.numel())
        if not size:
            return None
        skipped = values.numel() % size
        blocks = values.reshape(-1)[skipped:].reshape(-1, size).contiguous().cpu()
        bits = levels.bits.reshape(-1)[skipped:].reshape(-1, size).sum(dim=1).cpu()
        found = None
        content = blocks.view(torch.uint8).numpy()
        for index in torch.nonzero(bits >= BITS).flatten().tolist():
            digest = hashlib.blake2b(content[index].tobytes(), digest_size=16).digest()
            if self._seeds.setdefault(digest, seed) != seed and found is None:
                found = skipped + index * size
        while len(self._seeds) > MOST:
            del self._seeds[next(iter(self._seeds))]
        return found
