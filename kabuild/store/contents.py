"""The contents of a store: results, blobs and toolchains, with size and last use.

Users name a blob by a prefix of its hash.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kabuild.base.errors import Reason, UsageError
from kabuild.base.reading import read_plain
from kabuild.model.digest import Digest
from kabuild.store.paths import TOOLCHAINS

RESULTS = "ac"
BLOBS = "cas"
USED = "used"
"""A toolchain's file whose mtime is its last use, and which its users lock."""

SHORTEST = 4
"""Digits of a prefix by which users may name a blob."""

_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, order=True)
class Item:
    """One file, or one toolchain's directory. ``used`` is in seconds since 1970."""

    used: float
    name: str
    size: int = field(compare=False)
    path: str = field(compare=False)


@dataclass(frozen=True)
class Contents:
    """Everything that can be evicted, by hash.

    Attributes:
        leftovers: of interrupted fetches and removals of toolchains.
    """

    results: dict[str, Item]
    blobs: dict[str, Item]
    toolchains: dict[str, Item]
    leftovers: tuple[Item, ...]

    @property
    def size(self) -> int:
        """The size of everything, in bytes."""
        return sum(
            item.size
            for items in (self.results, self.blobs, self.toolchains)
            for item in items.values()
        ) + sum(item.size for item in self.leftovers)


def scan(root: Path) -> Contents:
    """List everything. Reads no file, and notes no use.

    Results come first: blobs are stored before the result that refers to them.
    """
    results = {item.name: item for item in _files(root / RESULTS)}
    blobs = {item.name: item for item in _files(root / BLOBS)}
    toolchains, leftovers = {}, []
    for item in _toolchains(root / TOOLCHAINS):
        if len(item.name) == 64:
            toolchains[item.name] = item
        else:
            leftovers.append(item)
    return Contents(results, blobs, toolchains, tuple(leftovers))


def find_blob(root: Path, prefix: str) -> Digest:
    """The only blob of the store at ``root`` whose hash has this prefix. Raises UsageError."""
    text = prefix.lower().partition("/")[0]
    if len(text) < SHORTEST or not _HEX.issuperset(text):
        raise UsageError(
            Reason.BAD_FLAG,
            f"'{prefix}' is not a valid key",
            hint=f"a key is 64 hexadecimal digits, or at least its first {SHORTEST}",
        )
    shard = root / BLOBS / text[:2]
    names = [n for n in os.listdir(shard) if n.startswith(text)] if shard.is_dir() else []  # noqa: PTH208
    if len(names) != 1:
        what = f"{len(names)} blobs begin with" if names else "nothing stored begins with"
        raise UsageError(
            Reason.BAD_FLAG,
            f"{what} {prefix}",
            hint="give more digits" if names else "'kabuild aquery' prints keys",
        )
    return Digest(names[0], (shard / names[0]).stat().st_size)


def is_hash(name: str) -> bool:
    """Whether a file's name is that of a blob or a result."""
    return len(name) == 64 and _HEX.issuperset(name)


def tree_size(root: str) -> int:
    """Bytes of all files below a directory."""
    total = 0
    for directory, _, names in os.walk(root):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{directory}/{name}").st_size
    return total


def toolchain_size(home: str) -> int:
    """The size of an unpacked toolchain in bytes, as noted after unpacking, or else counted."""
    with contextlib.suppress(OSError, ValueError):
        return int(read_plain(Path(home, USED)))
    return tree_size(home)


def _files(directory: Path) -> Iterator[Item]:
    """The files of all shards; foreign files are ignored."""
    for shard in _entries(directory):
        for entry in _entries(Path(shard.path)):
            if is_hash(entry.name):
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    yield Item(status.st_mtime, entry.name, status.st_size, entry.path)


def _toolchains(root: Path) -> Iterator[Item]:
    for entry in _entries(root):
        name, _, suffix = entry.name.partition(".")
        if not is_hash(name) or suffix == "lock":
            continue
        noted = Path(entry.path, USED) if not suffix else Path(entry.path)
        with contextlib.suppress(OSError):
            used = noted.stat().st_mtime
            yield Item(used, entry.name, toolchain_size(entry.path), entry.path)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
