"""Where files of one kind of pin come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kabuild.toolchain.lock import LockedFile


class Source(Protocol):
    """An index of files: of wheels, of packages, or none for an archive with a URL."""

    def find(self, requirement: str, machine: str) -> LockedFile:
        """The file for a requirement on a kind of machine, for the lock.

        Raises ToolchainError(FETCH_FAILED) where it cannot be had.
        """
        ...

    def urls(self, file: LockedFile) -> Iterator[str]:
        """Where a locked file may be had, best first; none where no index knows it.

        Raises ToolchainError(FETCH_FAILED) where no index can be asked.
        """
        ...
