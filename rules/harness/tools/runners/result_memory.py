"""Where results may lie in a frozen process's memory, by the kernel's own lists.

The judge reads a result once its clock has stopped, so by then the result must be there. One page
of a file, mapped to many places, is not: reading it makes the copies. Pages that were never
written are not, either: reading them fills in the zeros.
"""

from __future__ import annotations

import mmap
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, unique
from pathlib import Path

_PLACE = rb"^([0-9a-f]+)-([0-9a-f]+) "
_ANY = re.compile(_PLACE, re.MULTILINE)
_PRIVATE = re.compile(_PLACE + rb"...p [0-9a-f]+ 00:00 0\b", re.MULTILINE)  # and without a file
_SHARED = _PLACE + rb"...s ([0-9a-f]+) %02x:%02x %d\b"
"""Bytes, as a file's name may have any but a line's end, which the kernel escapes."""
_NO_FILE = -1, 0  # descriptor, and offset in the file less the address
_ENTRY = 8  # bytes for each page, of which the last one has the flags
_OWN = bytes((0x81, 0x40, 0x41))
"""The flags of a page that was written: present and mapped only here, or in swap. A page of zeros,
which the kernel maps where memory is only read, is present, but not mapped only here."""
_MOST_BYTES = 32 << 20
"""Of the list of mappings: a runner has some 100 KiB, but names can be made that take gigabytes."""
_MOST_ENTRIES = 1 << 17  # read at once


@unique
class Misplaced(Enum):
    """Why the judge does not read a result there."""

    ABSENT = 1
    """Nothing is mapped."""
    BARRED = 2
    """It is no private memory of the process, and no file in which results may lie."""
    UNWRITTEN = 3
    """Nobody has written some of its pages."""


class ResultMemory:
    """The parts of a process's memory in which results may lie.

    Those are its private memory that belongs to no file, and shared mappings of ``lent`` files.
    """

    def __init__(self, pid: int, lent: Sequence[int] = ()) -> None:
        """Read the kernel's lists. Raises OSError if that fails, ValueError if too long."""
        with Path(f"/proc/{pid}/maps").open("rb") as listed:
            self._maps = listed.read(_MOST_BYTES + 1)
        if len(self._maps) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes of mappings")
        parts = [(first, end, _NO_FILE) for first, end in self._mapped(_PRIVATE)]
        for fd in lent:
            device, inode = os.fstat(fd).st_dev, os.fstat(fd).st_ino
            its = re.compile(_SHARED % (os.major(device), os.minor(device), inode), re.MULTILINE)
            parts += [(first, end, (fd, at - first)) for first, end, at in self._mapped(its)]
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._sources: list[tuple[int, int]] = []
        for first, end, source in sorted(parts):
            if self._ends and self._ends[-1] == first and self._sources[-1] == source:
                self._ends[-1] = end  # its bytes follow those before it
            else:
                self._starts.append(first)
                self._ends.append(end)
                self._sources.append(source)
        self._pages = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY)

    def close(self) -> None:
        """Release the descriptor."""
        os.close(self._pages)

    def misplaced(self, ranges: Sequence[tuple[int, int]]) -> tuple[Misplaced, int] | None:
        """What is wrong with the first of these addresses and sizes where something is."""
        private: list[tuple[int, int, int]] = []
        for index, (address, size) in enumerate(ranges):
            place = bisect_right(self._starts, address) - 1
            if place < 0 or address + size > self._ends[place]:
                return self._elsewhere(address, address + size), index
            if size and self._sources[place] == _NO_FILE:
                last = (address + size - 1) // mmap.PAGESIZE
                private.append((address // mmap.PAGESIZE, last + 1, index))
        if all(self._written(*span) for span in _joined(private)):
            return None
        wrong = (index for first, end, index in private if not self._written(first, end))
        return Misplaced.UNWRITTEN, min(wrong)

    def _elsewhere(self, first: int, end: int) -> Misplaced:
        """What is there instead, where no result may lie."""
        found = any(start < end and first < behind for start, behind in self._mapped(_ANY))
        return Misplaced.BARRED if found else Misplaced.ABSENT

    def _mapped(self, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, ...]]:
        """The numbers in the lines of the list that match."""
        return (tuple(int(text, 16) for text in found) for found in pattern.findall(self._maps))

    def _written(self, first: int, end: int) -> bool:
        """Whether all of these pages were."""
        for begin in range(first, end, _MOST_ENTRIES):
            wanted = min(_MOST_ENTRIES, end - begin) * _ENTRY
            entries = os.pread(self._pages, wanted, begin * _ENTRY)
            if len(entries) < wanted or entries[_ENTRY - 1 :: _ENTRY].translate(None, _OWN):
                return False
        return True


def _joined(pages: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """The same pages in as few spans as can be: each costs a system call."""
    begin = behind = 0
    for first, end, _ in sorted(pages):
        if first > behind:
            yield begin, behind
            begin = first
        behind = max(behind, end)
    yield begin, behind
