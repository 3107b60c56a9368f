"""Randomness that is unknown until the candidate is fixed, and equal in every replay."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import torch

Item = TypeVar("Item")


def artifact_digest(paths: Iterable[Path]) -> str:
    """SHA-256 over the candidate's files, in the order given, each by its own digest."""
    whole = hashlib.sha256()
    for path in paths:
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def derive(*parts: str | int) -> bytes:
    """32 bytes that depend on all parts and their boundaries."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).digest()


class Seeds:
    """All seeds of one judging: H(salt, artifact, gate, stage, config, round).

    The salt alone (the default one is public) reveals nothing before the artifact exists. An
    artifact that embeds its seeds has another digest, hence other seeds.
    """

    def __init__(self, salt: str, artifact: str, gate: str) -> None:
        self._parts = (salt, artifact, gate)

    def bytes(self, stage: str, config: str, round_: int = 0) -> bytes:
        """The 32 seed bytes of one round."""
        return derive("inputs", *self._parts, stage, config, round_)

    def generator(self, stage: str, config: str, round_: int = 0) -> torch.Generator:
        """A generator for the inputs of one round, on the device where tensors are made."""
        import torch

        seed = int.from_bytes(self.bytes(stage, config, round_)[:8], "big") >> 1
        return torch.Generator(torch.get_default_device()).manual_seed(seed)


class Stream:
    """Uniform choices from a key, the same in every version of Python.

    ``random.Random`` guarantees that only for ``random()``, and drawn configs are part of published
    results.
    """

    def __init__(self, *key: str | int) -> None:
        self._key = derive("stream", *key)
        self._block = 0

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound). Raises ``ValueError`` unless 0 < bound < 2**63."""
        if not 0 < bound < 1 << 63:
            raise ValueError(f"no integer is in [0, {bound})")
        limit = (1 << 64) // bound * bound
        while True:
            block = hashlib.sha256(self._key + self._block.to_bytes(8, "big")).digest()
            self._block += 1
            value = int.from_bytes(block[:8], "big")
            if value < limit:
                return value % bound

    def between(self, low: int, high: int) -> int:
        """A uniform integer in [low, high]."""
        return low + self.below(high - low + 1)

    def spread(self, low: int, high: int) -> int:
        """An integer in [low, high] with a uniform number of bits: small ones are common."""
        bits = self.between(low.bit_length(), high.bit_length())
        least = max(low, 1 << bits >> 1)
        return self.between(least, min(high, (1 << bits) - 1))

    def choice(self, items: Sequence[Item]) -> Item:
        """One of ``items``."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """``items`` in a random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in items]
