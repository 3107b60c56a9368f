"""What a profiler's figures of a call come to: where its time goes, and what would help.

Thresholds are rules of thumb. They decide which sentences are worth reading, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from counters.launches import WAITS, Launch

_LEAST_SHARE = 0.1
"""The least share of the time of a call that makes a kernel worth a sentence."""
_BUSY, _NEARLY = 50.0, 0.8
"""Percent of its peak from which a unit bounds a kernel, and how much of another unit's memory may
lack and still be what bounds it: what memory moves passes the caches, too.
"""
_FULL_SECTOR, _POOR_SECTOR = 32, 20
_CONFLICTS, _TURNS = 0.1, 0.01
"""Turns of the banks in conflict, of all turns and for each instruction."""
_LANES = 80.0
_OCCUPANCY = 40.0
_SPILLED = 0.01
"""Sectors of local memory for each of global memory, from which on spilling is reported."""

_UNITS = {
    "memory_percent": ("MEMORY_BOUND", "memory is", "move fewer bytes, or use them more often"),
    "l2_percent": ("L2_BOUND", "the L2 cache is", "keep data in registers or shared memory"),
    "l1_percent": ("L1_BOUND", "the L1 cache is", "use wider accesses, or fewer"),
    "compute_percent": (
        "COMPUTE_BOUND",
        "the arithmetic units are",
        "use fewer or cheaper instructions, or tensor cores",
    ),
}
_ADVICE = {
    "global_memory": "have more loads in flight: more warps, or independent loads in a thread",
    "global_memory_queue": "use fewer, wider accesses to global memory",
    "shared_memory": "have more independent work between an access to shared memory and its use",
    "shared_memory_queue": "use fewer, wider accesses to shared memory",
    "arithmetic_units": "spread instructions over the units, or use fewer",
    "barrier": "use fewer barriers, or smaller blocks",
    "memory_fence": "use fewer fences",
    "fixed_latency": "have more warps, or independent instructions in a thread",
    "instruction_fetch": "make the code smaller: unroll less",
    "branch": "use fewer jumps",
    "stores_at_the_end": "store less at the end, or have more work for each block",
}
"""By what warps wait for. For another warp they wait because there is enough to do."""


@dataclass(frozen=True)
class Finding:
    """Something about a kernel that takes a good part of the call.

    Attributes:
        kind: a stable name, such as ``MEMORY_BOUND``.
        share: the kernel's share of the time of all launches of its call, 0 to 1.
        text: a sentence with its evidence, and advice.
    """

    kind: str
    config: str
    kernel: str
    share: float
    text: str

    def to_json(self) -> dict[str, Any]:
        """As in ``counters.json``."""
        return {
            "kind": self.kind,
            "config": self.config,
            "kernel": self.kernel,
            "share": round(self.share, 4),
            "text": self.text,
        }


@dataclass(frozen=True)
class _Kernel:
    """All launches of one kernel in a call."""

    launches: Sequence[Launch]

    @cached_property
    def longest(self) -> Mapping[str, float]:
        """The figures of the launch that takes longest."""
        return max(self.launches, key=_time).figures

    def known(self, *names: str) -> tuple[float, ...] | None:
        """These figures of the longest launch; None if one is missing."""
        if any(name not in self.longest for name in names):
            return None
        return tuple(self.longest[name] for name in names)


def find(config: str, launches: Sequence[Launch]) -> list[Finding]:
    """The findings of a call, those of its slowest kernel first."""
    kernels: dict[str, list[Launch]] = {}
    for launch in launches:
        kernels.setdefault(launch.kernel, []).append(launch)
    together = sum(map(_time, launches))
    found = []
    for name, own in kernels.items():
        share = sum(map(_time, own)) / together if together else 0.0
        if share >= _LEAST_SHARE:
            said = _of_kernel(_Kernel(own))
            found += [Finding(kind, config, name, share, text) for kind, text in said]
    return sorted(found, key=lambda finding: -finding.share)


def _time(launch: Launch) -> float:
    return launch.figures.get("time_ns", 0.0)


def _of_kernel(kernel: _Kernel) -> Iterator[tuple[str, str]]:
    yield from _bound(kernel)
    yield from _few_blocks(kernel)
    yield from _occupancy(kernel)
    for operation in ("load", "store"):
        yield from _uncoalesced(kernel, operation)
    for operation in ("load", "store"):
        yield from _conflicts(kernel, operation)
    yield from _lanes(kernel)
    yield from _spills(kernel)


def _bound(kernel: _Kernel) -> Iterator[tuple[str, str]]:
    """The busiest unit, or what warps wait for while no unit is busy."""
    busy = {name: kernel.longest[name] for name in _UNITS if name in kernel.longest}
    if not busy:
        return
    most = max(busy, key=lambda name: busy[name])
    if busy.get("memory_percent", 0.0) >= _NEARLY * busy[most]:
        most = "memory_percent"
    kind, subject, advice = _UNITS[most]
    if busy[most] >= _BUSY:
        yield kind, f"{subject} busy {busy[most]:.0f}% of the time{_moved(kernel)}; {advice}"
        return
    waits = {name: kernel.longest.get(f"{WAITS}{name}", 0.0) for name in _ADVICE}
    longest = max(waits, key=lambda name: waits[name])
    if not waits[longest]:
        return
    cycles = sum(value for name, value in kernel.longest.items() if name.startswith(WAITS))
    yield (
        "LATENCY_BOUND",
        (
            f"no unit is busy, even {subject} so only {busy[most]:.0f}% of the time. Between two "
            f"instructions a warp waits {cycles:.1f} cycles, {waits[longest]:.1f} of them for "
            f"{longest.replace('_', ' ')}; {_ADVICE[longest]}"
        ),
    )


def _moved(kernel: _Kernel) -> str:
    moved = kernel.known("memory_read_bytes", "memory_written_bytes")
    return f" ({moved[0]:,.0f} bytes read, {moved[1]:,.0f} written)" if moved else ""


def _few_blocks(kernel: _Kernel) -> Iterator[tuple[str, str]]:
    known = kernel.known("blocks_of_device")
    if known and known[0] < 1.0:
        yield (
            "FEW_BLOCKS",
            (
                f"its blocks fill {known[0]:.0%} of what the device holds at once; "
                "use more blocks, with less work for each"
            ),
        )


def _occupancy(kernel: _Kernel) -> Iterator[tuple[str, str]]:
    known = kernel.known("occupancy_percent", "issued_percent")
    if known is None or known[0] >= _OCCUPANCY or known[1] >= _BUSY:
        return
    prefix = "blocks_by_"
    limits = {
        name.removeprefix(prefix): value
        for name, value in kernel.longest.items()
        if name.startswith(prefix)
    }
    by = ""
    if limits:
        least = min(limits, key=lambda name: limits[name])
        by = f" ({least.replace('_', ' ')} allow {limits[least]:.0f} blocks)"
    yield (
        "LOW_OCCUPANCY",
        (
            f"{known[0]:.0f}% of the warps that a multiprocessor can hold are there{by}, and an "
            f"instruction is issued in {known[1]:.0f}% of the cycles; have more warps"
        ),
    )


def _uncoalesced(kernel: _Kernel, operation: str) -> Iterator[tuple[str, str]]:
    known = kernel.known(f"global_{operation}_bytes_of_sector", f"global_{operation}_sectors")
    if known and known[1] and known[0] < _POOR_SECTOR:
        yield (
            "UNCOALESCED",
            (
                f"{operation}s use {known[0]:.1f} of {_FULL_SECTOR} bytes of each sector of global "
                f"memory ({known[1]:,.0f} sectors); let neighbouring lanes access neighbouring "
                "elements"
            ),
        )


def _conflicts(kernel: _Kernel, operation: str) -> Iterator[tuple[str, str]]:
    known = kernel.known(f"shared_{operation}_conflicts", f"shared_{operation}_passes")
    instructions = kernel.longest.get("instructions", 0.0)
    if known and known[0] >= max(_CONFLICTS * known[1], _TURNS * instructions, 1):
        yield (
            "BANK_CONFLICT",
            (
                f"{known[0]:,.0f} of {known[1]:,.0f} turns of the banks of shared memory are for "
                f"{operation}s in conflict; pad the rows, or let neighbouring lanes access "
                "neighbouring words"
            ),
        )
    share = kernel.known("shared_conflict_percent") if operation == "load" else None
    if share and share[0] >= _CONFLICTS * 100:
        yield (
            "BANK_CONFLICT",
            f"shared memory waits for bank conflicts {share[0]:.0f}% of the time; pad the rows",
        )


def _lanes(kernel: _Kernel) -> Iterator[tuple[str, str]]:
    known = kernel.known("lanes_percent")
    if known and 0 < known[0] < _LANES:
        yield (
            "DIVERGENT",
            (
                f"{known[0]:.0f}% of a warp's lanes take part in an instruction; let whole warps "
                "take the same way, and have a multiple of a warp's threads in a block"
            ),
        )


def _spills(kernel: _Kernel) -> Iterator[tuple[str, str]]:
    known = kernel.known("local_load_sectors", "local_store_sectors")
    if known is None:
        return
    moved = sum(kernel.known("global_load_sectors", "global_store_sectors") or ())
    if sum(known) > _SPILLED * moved:
        yield (
            "SPILLS",
            (
                f"values do not fit into registers, or are indexed: {sum(known):,.0f} sectors of "
                "local memory; use fewer values at once, smaller blocks, or constant indices"
            ),
        )
