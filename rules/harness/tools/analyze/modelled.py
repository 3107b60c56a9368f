"""A time modelled from counts: how long a GPU's parts take for a call at their published peaks.

It is not a measurement, and no score uses it. It is the sum over all parts, as if only one worked
at a time. It excludes delays and everything without a published peak.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analyze.reuse import Reuse, Served, served
from analyze.sums import KINDS, amounts, sums

SECTOR = 32
_PER_CLOCK = ("sectors", "shared", "atomics", *KINDS, "branches")
_DELAYS = "delays"
"""Waiting for memory, which no count shows."""


@dataclass(frozen=True)
class Peaks:
    """The published peaks of one GPU.

    Attributes:
        gpu: its name.
        processors: the number of its multiprocessors or compute units.
        clock_mhz: their clock rate.
        memory_gbs: bytes that memory delivers and takes per nanosecond.
        l1_kib: the size of each processor's own cache.
        l2_mib: the size of the cache that all processors share.
        launch_us: the time of a launch that follows another.
        clock: how much one processor does per clock, for ``sectors``, ``shared``, ``atomics``,
            ``KINDS`` and ``branches``; parts without a published peak are absent.
    """

    gpu: str
    processors: int
    clock_mhz: float
    memory_gbs: float
    l1_kib: float
    l2_mib: float
    launch_us: float
    clock: Mapping[str, float] = field(hash=False)


@dataclass(frozen=True)
class Modelled:
    """The modelled time of a call on one GPU.

    Attributes:
        parts: nanoseconds of each part that takes any.
        left_out: what the call does for which no peak is published.
        l2: what the cache that all blocks share would do; None if that was not counted.
        busy: processors that have a block, in the launch with the most blocks.
    """

    peaks: Peaks
    parts: Mapping[str, float] = field(hash=False)
    left_out: tuple[str, ...]
    l2: Served | None
    busy: int

    @property
    def ns(self) -> float:
        """The sum of all parts."""
        return sum(self.parts.values())

    def to_json(self) -> dict[str, Any]:
        """As in ``analysis.json``."""
        return {
            "gpu": self.peaks.gpu,
            "ns": round(self.ns, 1),
            "processors": self.peaks.processors,
            "busy": self.busy,
            "parts": {name: round(ns, 1) for name, ns in self.parts.items()},
            "left_out": list(self.left_out),
            "l2": _cache(self.l2, self.peaks.l2_mib) if self.l2 else None,
        }


def modelled(call: Mapping[str, Any], peaks: Peaks) -> Modelled:
    """The modelled time of a call of ``analysis.json``."""
    done: Counter[str] = Counter()
    kernels = sums(call)["launches"]
    for kernel in kernels:
        done.update(amounts(kernel, peaks.processors))
    of_clock = {name: done[name] / peaks.clock[name] for name in _PER_CLOCK if name in peaks.clock}
    l2 = _shared_cache(call["launches"], peaks)
    parts = {
        "launch": done["launch"] * peaks.launch_us * 1e3,
        "memory": _bytes(call["launches"], l2) / peaks.memory_gbs,
        **{name: clocks / peaks.clock_mhz * 1e3 for name, clocks in of_clock.items()},
    }
    left_out = [name for name in _PER_CLOCK if name not in of_clock and done[name]]
    left_out += ["barriers"] * any(kernel["barriers"] for kernel in kernels)
    left_out += ["exchanges"] * any(launch["exchanges"] for launch in call["launches"])
    told = {name: ns for name, ns in parts.items() if ns}
    blocks = max(math.prod(launch["grid"]) for launch in call["launches"])
    return Modelled(peaks, told, (*left_out, _DELAYS), l2, min(blocks, peaks.processors))


def _shared_cache(launches: Sequence[Mapping[str, Any]], peaks: Peaks) -> Served | None:
    own, shared = peaks.l1_kib * 1024 / SECTOR, peaks.l2_mib * (1 << 20) / SECTOR
    total = Served()
    for launch in launches:
        if launch["reuse"] is None:
            return None
        reuse = Reuse.of_json(launch["reuse"])
        total += served(reuse, own=own, shared=shared, written=launch["sectors_written"])
    return total


def _bytes(launches: Sequence[Mapping[str, Any]], l2: Served | None) -> float:
    """Bytes that memory moves: by the cache's estimate, else each sector once per launch."""
    if l2:
        return SECTOR * (l2.read + l2.written)
    return float(SECTOR * sum(one["sectors_read"] + one["sectors_written"] for one in launches))


def _cache(l2: Served, mib: float) -> dict[str, Any]:
    return {
        "mib": mib,
        "sectors_asked": round(l2.asked),
        "hits": round(l2.hits / l2.asked, 4) if l2.asked else 0.0,
        "bytes_read": round(SECTOR * l2.read),
        "bytes_written": round(SECTOR * l2.written),
    }
