"""The most wasteful accesses of a call, each with its counts.

A share is not a time. It is the part of that memory's traffic or waiting that was unnecessary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from analyze.counts import Access, Counts, place_json
from analyze.totals import Totals

MOST = 5
"""The most findings reported for a candidate."""

_LEAST_SHARE = 0.1
_LITTLE = 1.0
"""Extra sectors per request that misaligned addresses alone explain."""


@dataclass(frozen=True)
class Finding:
    """One access that costs more than necessary.

    Attributes:
        kind: ``UNCOALESCED``, ``BANK_CONFLICT`` or ``ATOMIC_CONTENTION``.
        config: the config of the call.
        warp: lanes of a warp, 32 or 64.
        share: the part of the cost of all accesses of this kind that this one wastes, 0 to 1.
        text: the counts, and advice.
    """

    kind: str
    config: str
    warp: int
    access: Access
    share: float
    text: str

    def to_json(self) -> dict[str, Any]:
        """As in ``analysis.json``."""
        return {
            "kind": self.kind,
            "config": self.config,
            "warp": self.warp,
            "kernel": self.access.kernel,
            **place_json(self.access.place),
            "memory": self.access.memory,
            "operation": self.access.operation,
            "share": round(self.share, 4),
            "text": self.text,
        }


@dataclass(frozen=True)
class _Cost:
    """One kind of cost: how to compute its total and its waste."""

    kind: str
    concerns: Callable[[Access], bool]
    all: Callable[[Totals], int]
    waste: Callable[[Totals], int]
    text: Callable[[Totals], str]


def find(calls: Iterable[tuple[str, Counts]], warp: int) -> list[Finding]:
    """The most wasteful accesses of all calls, for warps of 32 or 64 lanes.

    Each call is given with the name of its config. An access found in several calls is listed once,
    where it wastes most.
    """
    worst: dict[object, Finding] = {}
    for config, counts in calls:
        for finding in _of_call(config, counts, warp):
            known = (finding.kind, finding.access.key)
            if known not in worst or worst[known].share < finding.share:
                worst[known] = finding
    return sorted(worst.values(), key=lambda finding: -finding.share)[:MOST]


def _of_call(config: str, counts: Counts, warp: int) -> Iterator[Finding]:
    for cost in _COSTS:
        concerned = [
            (access, access.narrow if warp == 32 else access.wide)
            for access in counts.accesses
            if cost.concerns(access)
        ]
        together = sum(cost.all(totals) for _, totals in concerned)
        for access, totals in concerned:
            share = cost.waste(totals) / together if together else 0.0
            if share >= _LEAST_SHARE:
                text = f"{_subject(access)} {cost.text(totals)}"
                yield Finding(cost.kind, config, warp, access, share, text)


def _subject(access: Access) -> str:
    what = {"load": "loads of", "store": "stores to", "atomic": "atomic operations on"}
    memory = f"'{access.memory}'" if access.memory else "memory without a name"
    shared = "shared " if access.space == "shared" else ""
    return f"{what[access.operation]} {shared}{memory}"


def _uncoalesced(totals: Totals) -> str:
    per, least = (n / totals.requests for n in (totals.sectors, totals.sectors_least))
    advice = "let neighbouring lanes access neighbouring elements"
    if per - least <= _LITTLE:
        advice = "let each warp begin at a multiple of 32 bytes"
    return (
        f"move {per:.1f} sectors per request where {least:.1f} would hold the bytes "
        f"({totals.efficiency:.0%} of {_count(totals.sectors, 'sector')} needed); {advice}"
    )


def _conflict(totals: Totals) -> str:
    least = totals.passes_least / totals.requests
    most = totals.passes_most / least if least else 0.0
    return (
        f"conflict {totals.ways:.1f} ways, {most:.0f} at worst "
        f"({_count(totals.passes, 'pass', 'passes')} of the banks for {totals.passes_least:,}); "
        "pad the rows, or let neighbouring lanes access neighbouring words"
    )


def _contention(totals: Totals) -> str:
    per = totals.turns / totals.requests
    return (
        f"have {per:.1f} lanes of a warp at one address, {totals.turns_most} at worst "
        f"({_count(totals.requests, 'request')}); combine the lanes' values first"
    )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


_COSTS: Sequence[_Cost] = (
    _Cost(
        "UNCOALESCED",
        lambda access: access.space == "global",
        lambda totals: totals.sectors,
        lambda totals: totals.sectors - totals.sectors_least,
        _uncoalesced,
    ),
    _Cost(
        "BANK_CONFLICT",
        lambda access: access.space == "shared",
        lambda totals: totals.passes,
        lambda totals: totals.passes - totals.passes_least,
        _conflict,
    ),
    _Cost(
        "ATOMIC_CONTENTION",
        lambda access: access.operation == "atomic",
        lambda totals: totals.turns,
        lambda totals: totals.turns - totals.requests,
        _contention,
    ),
)
