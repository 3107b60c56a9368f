"""A time that a fit makes of counts: to rank variants of a kernel before they are timed.

A call's time is a sum, over its launches, of what is done times what each of it takes on a GPU. The
coefficients are fitted to calls that were timed there; ``tests/device/time_model.py`` fits them. It
is not a measurement, and no score uses it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analyze.sums import amounts, operations_of_warps

LAUNCH, MEMORY, CACHE = "launch", "memory", "cache"
TERMS = (
    LAUNCH,
    MEMORY,
    CACHE,
    *("sectors", "shared", "instructions", "special", "atomics", "trips", "barriers", "exchanges"),
)
"""What takes time: launches; bytes that move at least, and those that blocks ask of the cache they
share; then, for each multiprocessor that works, sectors, turns of banks, operations by kind, and
atomic operations; then, for each warp in a row, trips to memory, barriers, and exchanges. In the
last round of blocks all wait for the warp with the most trips."""

_WARP = 32

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Gpu:
    """How much of it there is: of one multiprocessor, but for their number."""

    processors: int = 132
    threads: int = 2048
    blocks: int = 32
    shared_kib: int = 228


H100 = Gpu()


@dataclass(frozen=True)
class Fitted:
    """The fit for one GPU: the nanoseconds of each of ``TERMS``."""

    gpu: Gpu
    ns: Mapping[str, float] = field(hash=False)

    def of(self, call: Row) -> float:
        """The nanoseconds of a call, as ``analyze.sums.sums`` tells it."""
        return sum(self.parts(call).values())

    def parts(self, call: Row) -> dict[str, float]:
        """The nanoseconds of each of ``TERMS``; of a small call, most are of launches."""
        return {name: self.ns[name] * amount for name, amount in terms(call, self.gpu).items()}


def read_fitted(table: Row, processors: int) -> Fitted:
    """The table ``fitted`` of a platform's ``peaks.toml``."""
    gpu = Gpu(processors, table["threads"], table["blocks"], table["shared_kib"])
    return Fitted(gpu, table["ns"])


def terms(call: Row, gpu: Gpu = H100) -> dict[str, float]:
    """What a call does, of each of ``TERMS``."""
    found = dict.fromkeys(TERMS, 0.0)
    for kernel in call["launches"]:
        for name, amount in _of_kernel(kernel, gpu).items():
            found[name] += amount
    return found


def _of_kernel(kernel: Row, gpu: Gpu) -> dict[str, float]:
    shapes = kernel["shapes"]
    launches = sum(shape["count"] for shape in shapes)
    warps = sum(shape["count"] * _blocks(shape) * _warps(shape) for shape in shapes) or 1
    rounds = max(_rounds(shape, gpu) for shape in shapes)
    accesses = kernel["accesses"]
    loads = sum(accesses.get(f"global {name} requests", 0) for name in ("load", "atomic")) / warps
    most = max(loads, *(shape["loads_most_of_thread"] or 0 for shape in shapes))
    read = sum(shape["sectors_read"] for shape in shapes)
    written = sum(shape["sectors_written"] for shape in shapes)
    by_blocks = sum(shape["sectors_read_by_blocks"] or shape["sectors_read"] for shape in shapes)
    done = amounts(kernel, gpu.processors)
    plain = operations_of_warps(done, "f64", "f32", "f16", "conversion", "integer")
    return {
        LAUNCH: done["launch"],
        MEMORY: float(read + written),
        CACHE: float(by_blocks + written),
        "sectors": done["sectors"],
        "shared": done["shared"],
        "instructions": plain + done["branches"],
        "special": operations_of_warps(done, "special"),
        "atomics": done["atomics"],
        "trips": (loads * (rounds - 1) + most) * launches,
        "barriers": kernel["barriers"] / warps * rounds * launches,
        "exchanges": sum(shape["exchanges"] for shape in shapes) / warps * rounds * launches,
    }


def _blocks(shape: Row) -> int:
    return int(math.prod(shape["grid"]))


def _warps(shape: Row) -> int:
    return max(1, -(-math.prod(shape["block"] or [_WARP]) // _WARP))


def _rounds(shape: Row, gpu: Gpu) -> int:
    """How many blocks a multiprocessor runs one after the other, at least one."""
    threads = _WARP * _warps(shape)
    shared = (gpu.shared_kib << 10) // (shape["shared_bytes"] + 1024)
    at_once: int = min(gpu.blocks, gpu.threads // threads, shared)
    return max(1, -(-_blocks(shape) // (gpu.processors * max(1, at_once))))
