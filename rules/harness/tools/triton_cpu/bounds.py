"""The memory that a Triton launch on the CPU may touch, and the check of every access to it.

Triton's interpreter reads and writes whatever address a kernel computes. Here each access is
compared with the registered allocations first, so that a kernel that leaves its tensors stops with
an error that names the pointer instead of corrupting the process.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Allocation:
    """A named stretch of memory: first address and size in bytes."""

    name: str
    start: int
    size: int

    @property
    def end(self) -> int:
        """One past the last address."""
        return self.start + self.size

    def distance(self, address: int) -> int:
        """How many bytes `address` lies outside; 0 when inside."""
        return max(self.start - address, address - self.end + 1, 0)


class Observer(Protocol):
    """Receives the launches of kernels and their accesses."""

    def launched(self, kernel: str, grid: tuple[int, ...]) -> None:
        """A launch of the kernel with this name begins."""

    def accessed(
        self,
        operation: str,
        addresses: Addresses,
        mask: Any,
        width: int,
        memory: Allocation | None,
    ) -> None:
        """A program makes an access with some active lane; its bounds are not checked yet.

        ``operation`` is ``load``, ``store`` or ``atomic``. ``addresses``, ``mask`` and ``width``
        are as for ``Memory.check``. ``memory`` is what the first active lane accesses; None if
        that is outside all allocations.
        """

    def ended(self) -> None:
        """The launch has ended, with or without an error."""


class OutOfBoundsError(Exception):
    """<access> of <n> bytes out of bounds: byte <offset> of '<name>' (<size> bytes), <n> lanes."""

    def __init__(
        self,
        access: str,
        *,
        width: int,
        address: int,
        near: Allocation | None,
        lanes: int,
        program: tuple[int, int, int],
    ) -> None:
        self.access = access
        self.allocation = near.name if near else ""
        self.offset = address - near.start if near else 0
        self.lanes = lanes
        self.program = program
        where = (
            f"byte {self.offset} of '{near.name}' ({near.size} bytes)"
            if near
            else f"address {address:#x}, and no tensor is registered"
        )
        super().__init__(
            f"{access} of {width} bytes out of bounds: {where}, "
            f"{lanes} lane{'s' if lanes != 1 else ''}, program {program}"
        )


class Memory:
    """The allocations in force: those registered from outside, and those of the running launch.

    Attributes:
        observer: is notified of each launch and access; None if there is none.
    """

    def __init__(self) -> None:
        self._registered: list[Allocation] = []
        self._launched: list[Allocation] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.observer: Observer | None = None

    @contextmanager
    def registered(self, allocations: Iterable[Allocation]) -> Iterator[None]:
        """Make `allocations` legal for every launch within the context."""
        added = list(allocations)
        self._registered.extend(added)
        try:
            self._index()
            yield
        finally:
            del self._registered[len(self._registered) - len(added) :]
            self._index()

    @contextmanager
    def launched(self, allocations: Iterable[Allocation]) -> Iterator[None]:
        """Make the storages of a launch's arguments legal while it runs.

        A storage that overlaps a registered allocation is left out: the registered extent is
        exact, and the storage around it may be a slab with guard bands and other tensors.
        """
        before = self._launched
        self._launched = before + [
            found
            for found in allocations
            if not any(
                known.start < found.end and found.start < known.end for known in self._registered
            )
        ]
        try:
            self._index()
            yield
        finally:
            self._launched = before
            self._index()

    def check(
        self,
        access: str,
        addresses: Addresses,
        mask: Any,
        width: int,
        program: tuple[int, int, int],
    ) -> None:
        """Raise OutOfBoundsError when an active lane leaves the allocations.

        `addresses` holds one address per lane; `mask` (bool) broadcasts to it; `width` is the size
        of one element in bytes.
        """
        active = addresses
        if not mask.all():
            active = addresses[np.broadcast_to(mask, addresses.shape)]
            if not active.size:
                return
        if self.observer is not None:
            known = self._at(int(active.flat[0]))
            self.observer.accessed(access, addresses, mask, width, known)
        low, high = int(active.min()), int(active.max())
        at = bisect_right(self._starts, low) - 1
        if at >= 0 and high + width <= self._ends[at]:
            return
        outside = self._outside(active.reshape(-1), width)
        if outside.size:
            first = int(outside[0])
            raise OutOfBoundsError(
                access,
                width=width,
                address=first,
                near=self._nearest(first),
                lanes=int(outside.size),
                program=program,
            )

    def _outside(self, active: Addresses, width: int) -> Addresses:
        """Give the addresses whose `width` bytes are not within one stretch of legal memory."""
        if not self._starts:
            return active
        starts = np.array(self._starts, dtype=np.uint64)
        ends = np.array(self._ends, dtype=np.uint64)
        at = np.searchsorted(starts, active, side="right").astype(np.int64) - 1
        bad = (at < 0) | (active + np.uint64(width) > ends[np.maximum(at, 0)])
        outside: Addresses = active[bad]
        return outside

    def _at(self, address: int) -> Allocation | None:
        known = (*self._registered, *self._launched)
        return next((found for found in known if found.start <= address < found.end), None)

    def _nearest(self, address: int) -> Allocation | None:
        return min(
            (*self._registered, *self._launched),
            key=lambda allocation: allocation.distance(address),
            default=None,
        )

    def _index(self) -> None:
        """Merge overlapping allocations into sorted stretches for the search."""
        self._starts, self._ends = [], []
        legal: Sequence[Allocation] = sorted(
            (*self._registered, *self._launched), key=lambda allocation: allocation.start
        )
        for allocation in legal:
            if not allocation.size:
                continue
            if self._ends and allocation.start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], allocation.end)
            else:
                self._starts.append(allocation.start)
                self._ends.append(allocation.end)
