"""The limits of NVIDIA's multiprocessors, and how many warps of a kernel they hold."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_FIGURES = Path(__file__).parents[3] / "platforms/cuda/architectures.toml"

WARP = 32
_REGISTERS = 65536
"""Registers of 32 bits of a multiprocessor."""
_REGISTERS_OF_A_WARP = 256
"""A warp gets its registers in pieces of this size."""
_FIRST_WITH_OWN = 90
"""From here on, processors have instructions that their successors do not take over."""
_SHARED_PIECE = 128
_SHARED_RESERVED = 1024
"""Bytes of shared memory that a block takes besides its own."""


@dataclass(frozen=True)
class Architecture:
    """One architecture: ``sm_90``, with the limits of a multiprocessor.

    ``warps`` and ``blocks`` are the most that are resident; ``shared_bytes`` is what blocks can
    have of its shared memory together, and ``block_shared_bytes`` what one can have that asks
    for it at its launch.
    """

    name: str
    warps: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int

    @property
    def number(self) -> str:
        """``90`` of ``sm_90``."""
        return self.name.removeprefix("sm_")

    @property
    def exact(self) -> str:
        """``90a`` of ``sm_90``: with what no other processor has, such as the matrix units'
        asynchronous products. A library has code for one processor anyway."""
        return self.number + ("a" if int(self.number) >= _FIRST_WITH_OWN else "")

    @property
    def macro(self) -> str:
        """``900`` of ``sm_90``: its number in macros."""
        return f"{self.number}0"

    @property
    def defines(self) -> tuple[str, ...]:
        """What NVIDIA's own compiler defines for code of this processor."""
        value = self.macro
        if self.exact == self.number:
            return (f"-D__CUDA_ARCH__={value}",)
        return (
            f"-D__CUDA_ARCH__={value}",
            f"-D__CUDA_ARCH_SPECIFIC__={value}",
            f"-D__CUDA_ARCH_FAMILY_SPECIFIC__={value}",
            f"-D__CUDA_ARCH_FEAT_SM{self.number}_ALL",
        )


def _read() -> Iterator[tuple[str, Architecture]]:
    """Every architecture of the platform, and every variant, which has the same figures."""
    for name, figures in tomllib.loads(_FIGURES.read_text()).items():
        warps, blocks, shared = (figures[key] for key in ("warps", "blocks", "shared_kib"))
        own = Architecture(name, warps, blocks, shared << 10, (shared - 1) << 10)
        yield name, own
        yield from ((variant, own) for variant in figures.get("variants", ()))


ARCHITECTURES: Mapping[str, Architecture] = dict(_read())


def resident_warps(
    arch: Architecture, *, threads: int, registers: int, shared_bytes: int
) -> tuple[int, str]:
    """The warps of such blocks that a multiprocessor holds, and the resource that limits them.

    Dynamic shared memory is not known before a launch, and not counted.
    """
    warps = -(-threads // WARP)
    of_warp = _up(registers * WARP, _REGISTERS_OF_A_WARP)
    shared = _up(shared_bytes + _SHARED_RESERVED, _SHARED_PIECE)
    limits = {
        "registers": _REGISTERS // (of_warp * warps) if registers else arch.blocks,
        "shared memory": arch.shared_bytes // shared,
        "warps": arch.warps // warps,
        "blocks": arch.blocks,
    }
    limit = min(limits, key=lambda name: limits[name])
    return limits[limit] * warps, limit


def _up(value: int, piece: int) -> int:
    return -(-value // piece) * piece
