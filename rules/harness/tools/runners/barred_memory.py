"""Where a process has mapped some files, by the kernel's own list."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Barred:
    """Parts of a process's memory: the first address of each, and the first one behind it."""

    parts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, pid: int, fds: Sequence[int]) -> Barred:
        """Where process ``pid`` has mapped the files behind these descriptors. Raises OSError."""
        files = {os.fstat(fd).st_ino for fd in fds}
        return cls(tuple(_mapped(pid, files)) if files else ())

    def holds(self, address: int, size: int) -> bool:
        """Whether any of these bytes lies there."""
        return any(first < address + size and address < end for first, end in self.parts)


def _mapped(pid: int, files: set[int]) -> Iterator[tuple[int, int]]:
    """A file of the same number on another file system is taken for one of them, too."""
    for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
        place, _, _, _, inode, *_ = line.split()
        if int(inode) in files:
            first, end = place.split("-")
            yield int(first, 16), int(end, 16)
