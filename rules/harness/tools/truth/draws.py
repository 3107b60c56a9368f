"""Remembers draws, to find those that repeat under another seed."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from truth.sampling import REFUSED, Levels, related, shifted

BLOCK = 64
BITS = 72.0
"""How surprising a block must be, in bits: right draws then repeat once in 2 ** 72 blocks."""
MOST = 1 << 18
KEPT = 4


class Draws:
    """The draws of one output over many calls.

    Keeps up to ``MOST`` blocks of ``BLOCK`` elements, counted from the end, of all calls, and
    every level of the first and the latest ``KEPT`` calls of each size.
    """

    def __init__(self) -> None:
        self._seeds: dict[bytes, bytes] = {}
        self._calls: dict[int, list[tuple[bytes, Tensor]]] = {}

    def complaint(self, values: Tensor, levels: Levels, seed: bytes, tolerance: float) -> str:
        """Evidence that draws are not new for their seed; empty if there is none."""
        if (first := self._repeated(values, levels, seed)) is not None:
            return f"the draws from element {first} on repeat an earlier call with another seed"
        if self._related(levels.level.reshape(-1), seed, tolerance):
            return f"the draws {_ALIKE} those of an earlier call with another seed"
        return ""

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

    def _related(self, level: Tensor, seed: bytes, tolerance: float) -> bool:
        known = self._calls.setdefault(level.numel(), [])
        budget = REFUSED / (
            32 * KEPT
        )  # a quarter, for four comparisons with each of 2 * KEPT calls
        others = [other for theirs, other in known if theirs != seed and level.numel()]
        found = any(
            related(level, other, tolerance, budget) or shifted(level, other, budget)
            for other in others
        )
        known.append((seed, level))
        if len(known) > 2 * KEPT:
            del known[KEPT]
        return found


_ALIKE = "correlate with"
