"""How many other sectors a launch accesses before it returns to one, and what caches serve."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Self

OPERATIONS = ("load", "store", "atomic")
_COUNT = r"\d{1,18}"
_LINE = re.compile(
    rf"kabuild-counts reuse (?P<operation>{'|'.join(OPERATIONS)}) one_in (?P<one_in>{_COUNT}) "
    rf"first (?P<first>{_COUNT}) within(?P<within>(?: {_COUNT}){{0,32}}) "
    rf"across(?P<across>(?: {_COUNT}){{0,32}})",
    re.ASCII,
)


@dataclass(frozen=True)
class Distances:
    """Accesses of one kind to 32-byte sectors, by how many others were accessed in between.

    Attributes:
        first: accesses to sectors that the launch had not accessed before.
        within: accesses to sectors that the same block accessed last. Entry 0 counts those with no
            other sector in between, entry k those with at least 2**(k - 1) and less than 2**k.
        across: likewise, for sectors that another block accessed last.
    """

    first: int = 0
    within: tuple[int, ...] = ()
    across: tuple[int, ...] = ()

    def __add__(self, other: Distances) -> Distances:
        return Distances(
            self.first + other.first,
            _added(self.within, other.within),
            _added(self.across, other.across),
        )

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Self:
        """From ``analysis.json``."""
        return cls(value["first"], tuple(value["within"]), tuple(value["across"]))


@dataclass(frozen=True)
class Reuse:
    """The distances of one launch or of several, whose caches are empty at first.

    Attributes:
        one_in: 1 if every sector was tracked; n if one in n was.
    """

    one_in: int = 1
    kinds: Mapping[str, Distances] = field(hash=False, default_factory=dict)

    def __add__(self, other: Reuse) -> Reuse:
        kinds = {name: self.of(name) + other.of(name) for name in {**self.kinds, **other.kinds}}
        return Reuse(max(self.one_in, other.one_in), kinds)

    def of(self, operation: str) -> Distances:
        """The distances of one operation of ``OPERATIONS``."""
        return self.kinds.get(operation, Distances())

    def to_json(self) -> dict[str, Any]:
        """As in ``analysis.json``."""
        told = {name: vars(self.of(name)) for name in OPERATIONS}
        return {"one_in": self.one_in, **told}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Self:
        """From ``analysis.json``."""
        kinds = {name: Distances.of_json(value[name]) for name in OPERATIONS}
        return cls(value["one_in"], kinds)


@dataclass(frozen=True)
class Served:
    """The estimated work of a cache that all blocks share.

    Attributes:
        asked: sectors that blocks ask it for, and atomic operations on sectors.
        hits: how many of these it holds.
        read, written: sectors that memory delivers and takes.
    """

    asked: float = 0.0
    hits: float = 0.0
    read: float = 0.0
    written: float = 0.0

    def __add__(self, other: Served) -> Served:
        return Served(
            self.asked + other.asked,
            self.hits + other.hits,
            self.read + other.read,
            self.written + other.written,
        )


def read_reuse(line: str) -> Reuse | None:
    """The reuse by one operation, read from a line; None for other lines."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    within, across = (tuple(map(int, match[name].split())) for name in ("within", "across"))
    distances = Distances(int(match["first"]), within, across)
    return Reuse(int(match["one_in"]), {match["operation"]: distances})


def served(reuse: Reuse, *, own: float, shared: float, written: int) -> Served:
    """What a cache of ``shared`` sectors does, behind one of ``own`` sectors for each block.

    Both keep the most recently accessed sectors. The blocks' own caches serve only loads. Each of
    the ``written`` sectors goes to memory at least once.
    """
    loads, stores, atomics = (reuse.of(name) for name in OPERATIONS)
    near = held(loads.within, min(own, shared))
    asked_by_loads = _all(loads) - near
    hits_of_loads = held(loads.within, shared) - near + held(loads.across, shared)
    hits_of_stores, hits_of_atomics = (
        held(one.within, shared) + held(one.across, shared) for one in (stores, atomics)
    )
    missed_atomics = _all(atomics) - hits_of_atomics
    return Served(
        asked=asked_by_loads + _all(stores) + _all(atomics),
        hits=hits_of_loads + hits_of_stores + hits_of_atomics,
        read=asked_by_loads - hits_of_loads + missed_atomics,
        written=max(float(written), _all(stores) - hits_of_stores + missed_atomics),
    )


def held(distances: Sequence[int], capacity: float) -> float:
    """How many accesses a cache of ``capacity`` sectors serves; each entry's are spread evenly."""

    total = 0.0
    for entry, count in enumerate(distances):
        low, high = (1 << entry >> 1), 1 << entry
        total += count * min(1.0, max(0.0, (capacity - low) / (high - low)))
    return total


def _all(distances: Distances) -> int:
    return distances.first + sum(distances.within) + sum(distances.across)


def _added(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip_longest(one, other, fillvalue=0))
