"""The memory requests of one launch at one place, by warps of one width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Totals:
    """Sums over requests: a request is one access of a warp, by all lanes that take part in it.

    Attributes:
        partial: requests in which some lane of the warp takes no part.
        lanes: lanes of all requests together.
        bytes: bytes that lanes asked for, counted for each lane.
        sectors: 32-byte pieces of global memory that hold the requested bytes.
        sectors_least: sectors that would hold as many distinct bytes side by side.
        passes: turns that the 32 banks of shared memory take.
        passes_least: turns that as many lanes would take without conflicts.
        passes_most: the most turns of one request.
        turns: lanes at the address that most lanes of a request have; an atomic operation
            handles them one after the other.
        turns_most: the most of one request.
    """

    requests: int = 0
    partial: int = 0
    lanes: int = 0
    bytes: int = 0
    sectors: int = 0
    sectors_least: int = 0
    passes: int = 0
    passes_least: int = 0
    passes_most: int = 0
    turns: int = 0
    turns_most: int = 0

    @classmethod
    def read(cls, words: Sequence[str]) -> Self:
        """From decimal numbers in the order of the attributes."""
        return cls(*map(int, words))

    def __add__(self, other: Totals) -> Totals:
        pairs = list(zip(astuple(self), astuple(other), strict=True))
        added = Totals(*(a + b for a, b in pairs))
        most = {name: max(getattr(self, name), getattr(other, name)) for name in _MOST}
        return Totals(**{**vars(added), **most})

    @property
    def plausible(self) -> bool:
        """Whether requests can have these totals; a candidate may write anything."""
        return self.requests > 0 or self == type(self)()

    @property
    def efficiency(self) -> float:
        """The share of moved sectors that was necessary; 1 if none was moved."""
        return self.sectors_least / self.sectors if self.sectors else 1.0

    @property
    def ways(self) -> float:
        """Bank turns relative to those without conflicts: 1 is the best, 32 the worst."""
        return self.passes / self.passes_least if self.passes_least else 1.0

    def to_json(self, *, shared: bool, atomic: bool) -> dict[str, Any]:
        """As in ``analysis.json``: the totals and their ratios."""
        names = [*_ALWAYS, *(_SHARED if shared else _GLOBAL), *(_ATOMIC if atomic else ())]
        told: dict[str, Any] = {name: getattr(self, name) for name in names}
        per = self.requests or 1
        if shared:
            told["ways"] = round(self.ways, 4)
        else:
            told["sectors_per_request"] = round(self.sectors / per, 4)
            told["efficiency"] = round(self.efficiency, 4)
        if atomic:
            told["turns_per_request"] = round(self.turns / per, 4)
        return told


@dataclass(frozen=True)
class Ways:
    """Sums over the arrivals of warps at a branch.

    Attributes:
        requests: how often warps arrived.
        partial: arrivals without some lane of the warp.
        lanes: lanes of all arrivals together.
        divergent: how often some lanes went one way and some the other.
    """

    requests: int = 0
    partial: int = 0
    lanes: int = 0
    divergent: int = 0

    @classmethod
    def read(cls, words: Sequence[str]) -> Self:
        """From decimal numbers in the order of the attributes."""
        return cls(*map(int, words))

    def __add__(self, other: Ways) -> Ways:
        return Ways(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def plausible(self) -> bool:
        """Whether at most all requests diverge, and all totals are 0 without requests."""

        return self.divergent <= self.requests and (self.requests > 0 or self == type(self)())


_MOST = ("passes_most", "turns_most")
_ALWAYS = ("requests", "partial", "lanes", "bytes")
_GLOBAL = ("sectors", "sectors_least")
_SHARED = ("passes", "passes_least", "passes_most")
_ATOMIC = ("turns", "turns_most")
FIELDS = len(Totals.__dataclass_fields__)
BRANCH_FIELDS = len(Ways.__dataclass_fields__)
