"""Launches of kernels, as a counting kernel tells of them: in lines of a known form."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from analyze.reuse import Reuse, read_reuse

_NUMBER = r"\d{1,18}"
_LAUNCH = re.compile(
    rf"""kabuild-counts\ launch\ (?P<kernel>[^;]{{1,100}});
    \ grid(?P<grid>(?:\ {_NUMBER}){{3}})(?:\ block(?P<block>(?:\ {_NUMBER}){{3}}))?
    \ shared\ (?P<shared>{_NUMBER})\ wave\ (?P<wave>{_NUMBER})
    \ exchanges\ (?P<exchanges>{_NUMBER})\ uncounted\ (?P<uncounted>{_NUMBER})""",
    re.VERBOSE | re.ASCII,
)
_FOOTPRINT = re.compile(
    rf"""kabuild-counts\ footprint\ sectors\ (?P<read>{_NUMBER})\ (?P<written>{_NUMBER})
    (?:\ blocks\ (?P<by_blocks>{_NUMBER})\ (?P<most>{_NUMBER}))?\ whole\ (?P<whole>[01])""",
    re.VERBOSE | re.ASCII,
)
_BUSIEST = re.compile(
    rf"kabuild-counts busiest loads (?P<loads>{_NUMBER}) operations (?P<operations>{_NUMBER})",
    re.ASCII,
)
NONE = "-"
"""What stands for an empty name."""

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Launch:
    """Equal launches of one kernel, added up.

    Attributes:
        block: threads of a block; empty if a compiler chooses them.
        wave: how many lanes exchange values in the run.
        count: how many launches.
        exchanges: wave operations of all these launches.
        uncounted: accesses and branches for which there was no room.
        sectors_read, sectors_written: sectors of 32 bytes of global memory, each counted once per
            launch: the least traffic, if no other launch has left data in a cache. What a HIP
            kernel itself has written first is not read.
        sectors_read_by_blocks: sectors, each counted once per block that loads it: the traffic to
            the shared cache, if each block's own cache is large enough. None if not counted.
        sectors_most_of_block: the most sectors that one block accesses. None if not counted.
        loads_most_of_thread: the most loads and atomic operations of global memory that one thread
            makes. None if not counted.
        operations_most_of_thread: the same of arithmetic.
        reuse: how far apart accesses to the same sectors are. None if not counted.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    wave: int
    count: int = 1
    exchanges: int = 0
    uncounted: int = 0
    sectors_read: int = 0
    sectors_written: int = 0
    sectors_read_by_blocks: int | None = None
    sectors_most_of_block: int | None = None
    loads_most_of_thread: int | None = None
    operations_most_of_thread: int | None = None
    reuse: Reuse | None = None

    @property
    def key(self) -> object:
        """The identity of a launch: launches with equal keys are added up."""
        return self.kernel, self.grid, self.block, self.shared_bytes, self.wave

    def __add__(self, other: Launch) -> Launch:
        return replace(
            self,
            count=self.count + other.count,
            exchanges=self.exchanges + other.exchanges,
            uncounted=self.uncounted + other.uncounted,
            sectors_read=self.sectors_read + other.sectors_read,
            sectors_written=self.sectors_written + other.sectors_written,
            sectors_read_by_blocks=_both(
                operator.add, self.sectors_read_by_blocks, other.sectors_read_by_blocks
            ),
            sectors_most_of_block=_both(
                max, self.sectors_most_of_block, other.sectors_most_of_block
            ),
            loads_most_of_thread=_both(max, self.loads_most_of_thread, other.loads_most_of_thread),
            operations_most_of_thread=_both(
                max, self.operations_most_of_thread, other.operations_most_of_thread
            ),
            reuse=_both(operator.add, self.reuse, other.reuse),
        )

    def to_json(self) -> dict[str, Any]:
        """As in ``analysis.json``."""
        told = {**vars(self), "grid": list(self.grid), "block": list(self.block)}
        return {**told, "reuse": self.reuse.to_json() if self.reuse else None}


def read_launch(line: str) -> Launch | None:
    """The launch that a line begins; None for another line."""
    if not (said := _LAUNCH.fullmatch(line)):
        return None
    return Launch(
        "" if said["kernel"] == NONE else said["kernel"],
        tuple(map(int, said["grid"].split())),
        tuple(map(int, (said["block"] or "").split())),
        int(said["shared"]),
        int(said["wave"]),
        exchanges=int(said["exchanges"]),
        uncounted=int(said["uncounted"]),
    )


def with_line(launch: Launch, line: str) -> Launch | None:
    """The launch with what a line tells of it; None if that tells of something else."""
    if said := _FOOTPRINT.fullmatch(line):
        return replace(
            launch,
            sectors_read=int(said["read"]),
            sectors_written=int(said["written"]),
            sectors_read_by_blocks=int(said["by_blocks"]) if said["by_blocks"] else None,
            sectors_most_of_block=int(said["most"]) if said["most"] else None,
        )
    if said := _BUSIEST.fullmatch(line):
        return replace(
            launch,
            loads_most_of_thread=int(said["loads"]),
            operations_most_of_thread=int(said["operations"]),
        )
    if reuse := read_reuse(line):
        return replace(launch, reuse=(launch.reuse or Reuse()) + reuse)
    return None


def _both(
    join: Callable[[_Item, _Item], _Item], one: _Item | None, other: _Item | None
) -> _Item | None:
    """The joined values of two launches; None if either is unknown."""
    return None if one is None or other is None else join(one, other)
