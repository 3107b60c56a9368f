"""Entries of archives, in any format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, unique
from typing import IO

from kabuild.base.errors import DriftError, Reason


@unique
class Kind(Enum):
    """The kind of an entry. Anything else, such as a device, is OTHER and refused."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symbolic link"
    HARDLINK = "hard link"
    OTHER = "neither file, directory nor link"


@dataclass(frozen=True)
class Entry:
    """One entry of an archive.

    Attributes:
        path: as in the archive, without a leading ``./``.
        mode: permission bits, with setuid and setgid.
        target: of a link.
        open: the content of a file; to be read before the next entry is requested.
    """

    path: str
    kind: Kind
    mode: int = 0o644
    target: str = ""
    open: Callable[[], IO[bytes]] | None = None


Entries = Iterator[Entry]


def bad_archive(name: str, problem: str) -> DriftError:
    """The error for an archive with the pinned content that cannot be unpacked."""
    return DriftError(
        Reason.BAD_ARCHIVE,
        f"{name} {problem}",
        hint="it was not kept; pin another version",
    )
