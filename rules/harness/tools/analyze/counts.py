"""Reads the counts that a counting kernel writes to the runner's standard error.

The counters live in the candidate's process, so the counts are untrusted: text of a known form, cut
short. They are shown and decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sanitize.places import Place, Places

from analyze.launch import NONE, Launch, read_launch, with_line
from analyze.sums import KINDS
from analyze.totals import BRANCH_FIELDS, FIELDS, Totals, Ways

_NUMBER = r"\d{1,18}"
_TOTALS = rf"(?:\ {_NUMBER}){{{FIELDS}}}"
_ACCESS = re.compile(
    rf"""kabuild-counts\ access\ (?P<place>\S{{1,300}})\ (?P<memory>\S{{1,64}});
    \ (?P<operation>load|store|atomic)\ (?P<space>global|shared)\ (?P<width>{_NUMBER})
    \ narrow(?P<narrow>{_TOTALS})\ wide(?P<wide>{_TOTALS})""",
    re.VERBOSE | re.ASCII,
)
_WAYS = rf"(?:\ {_NUMBER}){{{BRANCH_FIELDS}}}"
_BRANCH = re.compile(
    rf"""kabuild-counts\ branch\ (?P<place>\S{{1,300}});
    \ narrow(?P<narrow>{_WAYS})\ wide(?P<wide>{_WAYS})""",
    re.VERBOSE | re.ASCII,
)
_ARITHMETIC = re.compile(
    rf"kabuild-counts arithmetic (?P<place>\S{{1,300}}); (?P<kind>{'|'.join(KINDS)}) "
    rf"(?P<operations>{_NUMBER})",
    re.ASCII,
)
_BARRIER = re.compile(
    rf"kabuild-counts barrier (?P<place>\S{{1,300}}); (?P<passed>{_NUMBER})", re.ASCII
)
_END, _FULL = "kabuild-counts end", "kabuild-counts full"
_WITHOUT_SOME = " whole 0"
SECTOR = 32
"""Bytes of global memory that move at once."""
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Access:
    """One access of the source, of one kind and width.

    Attributes:
        place: its place in the source; None if that is not the author's.
        memory: the tensor or variable that it accessed first; empty if that has no name.
        operation: ``load``, ``store`` or ``atomic``.
        space: ``global`` or ``shared``.
        width: bytes per lane.
        narrow, wide: totals of warps of 32 and of 64 lanes; the latter are empty if the kernel
            ran with waves of 32.
    """

    kernel: str
    place: Place | None
    memory: str
    operation: str
    space: str
    width: int
    narrow: Totals
    wide: Totals

    @property
    def plausible(self) -> bool:
        """Whether every cost belongs to a request; a candidate may write anything."""
        return self.narrow.plausible and self.wide.plausible and self.narrow.requests > 0

    @property
    def key(self) -> object:
        """The identity of an access: accesses with equal keys are added up."""
        return self.kernel, self.place, self.memory, self.operation, self.space, self.width

    def __add__(self, other: Access) -> Access:
        return replace(self, narrow=self.narrow + other.narrow, wide=self.wide + other.wide)

    def to_json(self) -> dict[str, Any]:
        """As in ``analysis.json``."""
        kind = {"shared": self.space == "shared", "atomic": self.operation == "atomic"}
        told = {
            "kernel": self.kernel,
            **place_json(self.place),
            "memory": self.memory,
            "operation": self.operation,
            "space": self.space,
            "width": self.width,
            "warp32": self.narrow.to_json(**kind),
        }
        return {**told, "warp64": self.wide.to_json(**kind)} if self.wide.requests else told


@dataclass(frozen=True)
class Branch:
    """A conditional branch of the source.

    Attributes:
        narrow, wide: totals of warps of 32 and of 64 lanes; the latter are empty if the kernel
            ran with waves of 32.
    """

    kernel: str
    place: Place | None
    narrow: Ways
    wide: Ways

    @property
    def plausible(self) -> bool:
        """Whether no more warps diverged than arrived; a candidate may write anything."""
        return self.narrow.plausible and self.wide.plausible and self.narrow.requests > 0

    @property
    def key(self) -> object:
        """The identity of a branch: branches with equal keys are added up."""
        return self.kernel, self.place

    def __add__(self, other: Branch) -> Branch:
        return replace(self, narrow=self.narrow + other.narrow, wide=self.wide + other.wide)

    def to_json(self) -> dict[str, Any]:
        """As in ``analysis.json``."""
        told = {"kernel": self.kernel, **place_json(self.place), "warp32": vars(self.narrow)}
        return {**told, "warp64": vars(self.wide)} if self.wide.requests else told


@dataclass(frozen=True)
class Arithmetic:
    """Operations of all lanes on one line of the source, of one ``kind`` of ``KINDS``."""

    kernel: str
    place: Place | None
    kind: str
    operations: int

    @property
    def key(self) -> object:
        """The identity of an operation: its kernel, line and kind, but not its column."""
        place = (self.place.file, self.place.line) if self.place else None
        return self.kernel, place, self.kind

    def __add__(self, other: Arithmetic) -> Arithmetic:
        return replace(self, operations=self.operations + other.operations)

    def to_json(self) -> dict[str, Any]:
        """As in ``analysis.json``."""
        told = {"kernel": self.kernel, **place_json(self.place)}
        return {**told, "kind": self.kind, "operations": self.operations}


@dataclass(frozen=True)
class Barrier:
    """A barrier of the source, and how often blocks have passed it."""

    kernel: str
    place: Place | None
    passed: int

    @property
    def key(self) -> object:
        """The identity of a barrier: barriers with equal keys are added up."""
        return self.kernel, self.place

    def __add__(self, other: Barrier) -> Barrier:
        return replace(self, passed=self.passed + other.passed)

    def to_json(self) -> dict[str, Any]:
        """As in ``analysis.json``."""
        return {"kernel": self.kernel, **place_json(self.place), "passed": self.passed}


@dataclass(frozen=True)
class Counts:
    """The counts of one call.

    Attributes:
        whole: whether the counts are complete.
    """

    launches: tuple[Launch, ...] = ()
    accesses: tuple[Access, ...] = ()
    branches: tuple[Branch, ...] = ()
    arithmetic: tuple[Arithmetic, ...] = ()
    barriers: tuple[Barrier, ...] = ()
    whole: bool = True

    @property
    def traffic(self) -> dict[str, int]:
        """Bytes of global memory: the least that must move, and what warps of 32 lanes move."""
        asked = [access for access in self.accesses if access.space == "global"]
        return {
            "bytes_read": SECTOR * sum(launch.sectors_read for launch in self.launches),
            "bytes_written": SECTOR * sum(launch.sectors_written for launch in self.launches),
            "bytes_moved": SECTOR * sum(access.narrow.sectors for access in asked),
        }


def place_json(place: Place | None) -> dict[str, Any]:
    """A place in ``analysis.json``: file, line and column, empty and 0 for none."""
    return {
        "file": place.file if place else "",
        "line": place.line if place else 0,
        "column": place.column if place else 0,
    }


def read_counts(said: str, places: Places) -> Counts:
    """The counts in a runner's output; other lines are ignored."""
    launches: list[Launch] = []
    accesses: list[Access] = []
    branches: list[Branch] = []
    arithmetic: list[Arithmetic] = []
    barriers: list[Barrier] = []
    kernel: str | None = None
    whole = True
    for line in said.splitlines():
        if launch := read_launch(line):
            whole &= kernel is None
            launches.append(launch)
            kernel = launch.kernel
        elif match := _ACCESS.fullmatch(line):
            access = _access(kernel or "", match.groupdict(), places)
            whole &= kernel is not None and access.plausible
            accesses += [access] if access.plausible else []
        elif kernel is not None and (told := with_line(launches[-1], line)):
            launches[-1] = told
            whole &= not line.endswith(_WITHOUT_SOME)
        elif match := _BRANCH.fullmatch(line):
            branch = _branch(kernel or "", match.groupdict(), places)
            whole &= kernel is not None and branch.plausible
            branches += [branch] if branch.plausible else []
        elif match := _ARITHMETIC.fullmatch(line):
            whole &= kernel is not None
            place, operations = places.find(match["place"]), int(match["operations"])
            arithmetic.append(Arithmetic(kernel or "", place, match["kind"], operations))
        elif match := _BARRIER.fullmatch(line):
            place = places.find(match["place"])
            barriers.append(Barrier(kernel or "", place, int(match["passed"])))
        elif line in {_END, _FULL}:
            whole &= line == _END and kernel is not None
            kernel = None
    whole &= kernel is None and not any(launch.uncounted for launch in launches)
    return Counts(
        tuple(_merged(launches, lambda launch: launch.key)),
        tuple(_merged(accesses, lambda access: access.key)),
        tuple(_merged(branches, lambda branch: branch.key)),
        tuple(_merged(arithmetic, lambda one: one.key)),
        tuple(_merged(barriers, lambda barrier: barrier.key)),
        whole,
    )


def _access(kernel: str, said: Mapping[str, str], places: Places) -> Access:
    return Access(
        kernel,
        places.find(said["place"]),
        _name(said["memory"]),
        said["operation"],
        said["space"],
        int(said["width"]),
        Totals.read(said["narrow"].split()),
        Totals.read(said["wide"].split()),
    )


def _branch(kernel: str, said: Mapping[str, str], places: Places) -> Branch:
    ways = (Ways.read(said[width].split()) for width in ("narrow", "wide"))
    return Branch(kernel, places.find(said["place"]), *ways)


def _name(text: str) -> str:
    return "" if text == NONE else text


def _merged(items: Iterable[_Item], key: Callable[[_Item], object]) -> Iterable[_Item]:
    """Items with equal keys added up, in the order of the first of each."""
    found: dict[object, Any] = {}
    for item in items:
        known = key(item)
        found[known] = found[known] + item if known in found else item
    return found.values()
