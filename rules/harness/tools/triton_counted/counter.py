"""Counts launches of Triton kernels by line of source, and prints the counts on standard error.

The format is that of the runtime that counts HIP kernels: ``analyze.counts`` reads both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from posixpath import basename
from typing import Any

import numpy as np
from triton_cpu.bounds import Addresses, Allocation

from triton_counted import requests
from triton_counted.requests import SECTOR_BITS, Totals

_PREFIX = "kabuild-counts"
_NARROW, _WIDE = 32, 64
_MOST_OUTPUT = 3 << 20  # bytes that a process may print; the judge keeps more
_MOST_SECTORS = 1 << 22  # distinct sectors of a launch that are counted, read or written
_Site = tuple[int, str, str, int]
"""Line, name of the memory, operation, and bytes per element."""


class Counter:
    """The ``Observer`` of the kernels in one file.

    Args:
        path: the candidate's file; an access with no caller in it is counted without a line.
        descriptor: where to print the counts.
    """

    def __init__(self, path: str, descriptor: int = 2) -> None:
        self._path = path
        self._file = basename(path)
        self._descriptor = descriptor
        self._left = _MOST_OUTPUT
        self._head = ""
        self._sites: dict[_Site, tuple[Totals, Totals]] = {}
        self._read, self._written = _Sectors(), _Sectors()

    def launched(self, kernel: str, grid: tuple[int, ...]) -> None:
        """Begin the counts of a launch."""
        sizes = " ".join(map(str, grid))
        self._head = f"{kernel}; grid {sizes} shared 0 wave {_WIDE} exchanges 0 uncounted 0"
        self._sites = {}
        self._read, self._written = _Sectors(), _Sectors()

    def accessed(
        self,
        operation: str,
        addresses: Addresses,
        mask: Any,
        width: int,
        memory: Allocation | None,
    ) -> None:
        """Count one access of a program; ``memory`` is what its first active lane accesses."""
        lanes, active = requests.in_lanes(addresses, mask)
        if not active.any():
            return
        if memory is not None:  # count as if each tensor began at a whole sector
            lanes = lanes - np.uint64(memory.start % (1 << SECTOR_BITS))
        atomic = operation == "atomic"
        found = tuple(
            requests.totals(lanes, active, width, warp, atomic=atomic) for warp in (_NARROW, _WIDE)
        )
        name = "".join(memory.name.split())[:64] if memory else ""
        site = self._line(), name or "-", operation, width
        known = self._sites.get(site)
        self._sites[site] = (
            (_added(known[0], found[0]), _added(known[1], found[1]))
            if known
            else (found[0], found[1])
        )
        sectors = np.unique(lanes[active] >> np.uint64(SECTOR_BITS))
        if operation != "store":
            self._read.add(sectors)
        if operation != "load":
            self._written.add(sectors)

    def ended(self) -> None:
        """Print the counts of the launch."""
        said = "\n".join(self._lines())
        if len(said) > self._left:
            said, self._left = f"\n{_PREFIX} full\n", 0
        self._left -= len(said)
        _write(self._descriptor, said.encode())

    def _lines(self) -> Iterator[str]:
        yield ""  # begin a new line, whatever the kernel has printed before
        yield f"{_PREFIX} launch {self._head}"
        whole = int(self._read.whole and self._written.whole)
        counts = f"{self._read.count} {self._written.count}"
        yield f"{_PREFIX} footprint sectors {counts} whole {whole}"
        for (line, memory, operation, width), (narrow, wide) in self._sites.items():
            place = f"at:{self._file}:{line}:1" if line else "-"
            yield (
                f"{_PREFIX} access {place} {memory}; {operation} global {width}"
                f" narrow {_words(narrow)} wide {_words(wide)}"
            )
        yield f"{_PREFIX} end"
        yield ""

    def _line(self) -> int:
        """The innermost line of the candidate's file that is running; 0 for none."""
        frame = sys._getframe(1)  # noqa: SLF001 - the interpreter's only way to know
        while frame.f_back is not None and frame.f_code.co_filename != self._path:
            frame = frame.f_back
        return frame.f_lineno if frame.f_code.co_filename == self._path else 0


class _Sectors:
    """The distinct sectors of a launch, up to ``_MOST_SECTORS``.

    Attributes:
        whole: whether all of them are counted; false once there were too many.
    """

    def __init__(self) -> None:
        self._parts: list[Addresses] = []
        self._size = 0
        self.whole = True

    def add(self, sectors: Addresses) -> None:
        """Add sectors that are distinct among themselves."""
        self._parts.append(sectors)
        self._size += sectors.size
        if self._size > _MOST_SECTORS:
            self._parts = [np.unique(np.concatenate(self._parts))]
            self._size = self._parts[0].size
            if self._size > _MOST_SECTORS:
                self._parts, self._size, self.whole = [], 0, False

    @property
    def count(self) -> int:
        """The number of distinct sectors; too small unless ``whole``."""
        return int(np.unique(np.concatenate(self._parts)).size) if self._parts else 0


def _added(known: Totals, more: Totals) -> Totals:
    added = known + more
    added[requests.MOST] = np.maximum(known[requests.MOST], more[requests.MOST])
    return added


def _words(totals: Totals) -> str:
    return " ".join(map(str, totals.tolist()))


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
