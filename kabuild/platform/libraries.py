"""Where the libraries of a driver are; no toolchain has them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LOADER_CACHE = Path("/etc/ld.so.cache")
_DEFAULTS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_SELF = "/proc/self/exe"
_SEEN_BY_ALL = ("/usr/", "/lib/", "/lib64/")
"""Directories that every sandbox shows."""


@dataclass(frozen=True)
class Library:
    """A shared library of the machine.

    ``path`` is where it was found; ``by_default`` says whether a loader without further
    advice finds it there, too.
    """

    path: str
    by_default: bool

    @property
    def directory(self) -> str:
        """Where it lies."""
        return os.path.dirname(self.path)  # noqa: PTH120 - text in, text out

    def siblings(self, pattern: str) -> tuple[str, ...]:
        """Files beside it whose names match, and what links among them lead to, sorted.

        Empty where every sandbox shows the directory anyway.
        """
        directory = Path(self.directory)
        if f"{directory.resolve()}/".startswith(_SEEN_BY_ALL):
            return ()
        matching = [file for file in directory.iterdir() if re.fullmatch(pattern, file.name)]
        real = [file.resolve() for file in matching if file.is_symlink() and file.exists()]
        return tuple(sorted({str(file) for file in (*matching, *real)}))


def find_library(
    name: str,
    env: Mapping[str, str] | None = None,
    cache: Path = LOADER_CACHE,
    *,
    places: Sequence[str] = (),
) -> Library | None:
    """The library that a program with ``env`` would load, or that is in one of ``places``.

    These are the directories where a platform's driver puts it, besides those of every loader.
    Libraries for other processors than this Python's are skipped, such as a driver's of 32 bits.
    """
    advice = (os.environ if env is None else env).get("LD_LIBRARY_PATH", "")
    cached = list(_cached(name, cache))
    known = {os.path.realpath(os.path.dirname(path)) for path in cached}  # noqa: PTH120
    known.update(os.path.realpath(directory) for directory in _DEFAULTS)
    candidates = [
        *(f"{directory}/{name}" for directory in advice.split(":") if directory.startswith("/")),
        *cached,
        *(f"{directory}/{name}" for directory in (*_DEFAULTS, *places)),
    ]
    fitting = {b"", _machine(_SELF)}
    for path in candidates:
        if Path(path).is_file() and _machine(path) in fitting:
            return Library(path, os.path.realpath(os.path.dirname(path)) in known)  # noqa: PTH120
    return None


def _machine(path: str) -> bytes:
    """The bits and the processor that an ELF file is for; empty for any other file."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(20)
    except OSError:
        return b""
    return head[4:6] + head[18:20] if head.startswith(b"\x7fELF") else b""


def _cached(name: str, cache: Path) -> Iterator[str]:
    """Paths of the library in the loader's cache, which ends in a table of strings."""
    try:
        table = cache.read_bytes()
    except OSError:
        return
    for match in re.finditer(rb"(/[^\0]*/" + re.escape(name.encode()) + rb")\0", table):
        yield match[1].decode(errors="surrogateescape")
