"""Sources of the files of one kind of pin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kabuild.toolchain.lock import LockedFile


class Source(Protocol):
    """A source of files: wheels, packages, or an archive with a URL."""

    def find(self, requirement: str, machine: str) -> LockedFile:
        """The file for a requirement on a kind of machine, for the lock.

        Raises ToolchainError(FETCH_FAILED) if it cannot be found.
        """
        ...

    def urls(self, file: LockedFile) -> Iterator[str]:
        """The URLs of a locked file, best first; none if no index has it.

        Raises ToolchainError(FETCH_FAILED) if no index answers.
        """
        ...
