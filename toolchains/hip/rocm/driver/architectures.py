"""AMD's processors: the resources for a block of threads, and how many waves fit."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

_FIGURES = Path(__file__).parents[3] / "platforms/rocm/architectures.toml"


@dataclass(frozen=True)
class Architecture:
    """One processor, by the name that ``--offload-arch`` takes.

    Attributes:
        version: what AMD's device library knows it by.
        wave: threads of a wave.
        vectors: vector registers of a SIMD unit, for each of a wave's threads.
        granule: how many of them are given out at a time.
        waves: the most waves of a SIMD unit.
        shared: bytes of local data share that the blocks of a compute unit have in common; of a
            pair of them from RDNA on, where the compiler spreads a block over both.
        simds: SIMD units that it serves.
        scalar_limited: whether scalar registers, too, may keep waves out.
    """

    name: str
    version: int
    wave: int
    vectors: int
    granule: int
    waves: int
    shared: int
    simds: int
    scalar_limited: bool

    @property
    def block_shared(self) -> int:
        """Bytes of local data share that one block can have: of a pair of units, one's."""
        return self.shared // 2 if self.wave == 32 else self.shared


ARCHITECTURES = {
    name: Architecture(name, **figures)
    for name, figures in tomllib.loads(_FIGURES.read_text()).items()
}


@dataclass(frozen=True)
class Occupancy:
    """How many waves a SIMD unit holds at a time, of how many at most, and what limits that."""

    waves: int
    most: int
    limit: str
    """``waves`` where nothing else does, else ``registers``, ``scalar_registers`` or ``shared``."""


def occupancy(
    architecture: Architecture, *, vectors: int, scalars: int, shared: int, block: int
) -> Occupancy:
    """The occupancy of a kernel by its registers and its static local data share.

    ``block`` is the largest block that the kernel was compiled for: a smaller one, or dynamic
    shared memory, changes what the data share allows.
    """
    limits = {"waves": architecture.waves, "registers": _by_vectors(architecture, vectors)}
    if architecture.scalar_limited:
        limits["scalar_registers"] = _by_scalars(architecture, scalars)
    if shared:
        waves = -(-block // architecture.wave)
        blocks = architecture.shared // shared
        limits["shared"] = max(-(-blocks * waves // architecture.simds), 1)
    waves = min(limits.values())
    limit = next(name for name, value in limits.items() if value == waves)
    return Occupancy(waves, architecture.waves, limit)


def _by_vectors(architecture: Architecture, vectors: int) -> int:
    granules = max(-(-vectors // architecture.granule), 1)
    return max(architecture.vectors // (granules * architecture.granule), 1)


def _by_scalars(architecture: Architecture, scalars: int) -> int:
    """Of 800 scalar registers; a wave has at most 106, so never fewer than 7 waves."""
    return max(min(architecture.waves, 800 // max(scalars, 1)), 7)
