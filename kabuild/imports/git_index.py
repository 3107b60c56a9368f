"""Which files of a checkout are not as git has checked them out, told without running git.

Git runs what the configuration of a repository names, and a checkout's may be hostile.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.reading import read_plain
from kabuild.loading.checkout import Checkout

_MOST_BYTES = 256 << 20  # of an index
_MOST_TEXT = 8 << 20
_LONGEST = 4096  # bytes of a path: in an index that is hostile, each may add to the one before
_FIXED = 62  # bytes of an entry before its name, or before the extended flags
_DIGEST = slice(40, 60)
_EXTENDED = 0x4000
_PREFIXED = 4  # the version in which names lack what they share with the one before
_LINK = 0o120000


@dataclass(frozen=True)
class _Entry:
    mode: int
    digest: bytes


def git_directory(checkout: Path) -> Path:
    """Where git keeps what it knows of a checkout.

    Raises OSError, ValueError, IndexError and RuntimeError for one that has none.
    """
    git = checkout / ".git"
    if not git.is_file():
        return git
    told = read_plain(git, _MOST_TEXT).decode()  # of a worktree: "gitdir: PATH"
    return (checkout / told.split(":", 1)[1].strip()).resolve()


def changed_files(checkout: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Of these files, those that git has not, or has with another content.

    What was changed and staged counts as git's. Empty if the index cannot be read.
    """
    wanted = dict.fromkeys(paths)
    try:
        entries = _entries(read_plain(git_directory(checkout) / "index", _MOST_BYTES))
        known = {path: entry for path, entry in entries if path in wanted}
    except (OSError, RuntimeError, ValueError, IndexError):
        return ()
    files = Checkout(checkout)
    return tuple(path for path in wanted if _differs(checkout, files, path, known.get(path)))


def _differs(root: Path, files: Checkout, path: str, entry: _Entry | None) -> bool:
    if entry is None:  # git knows what is behind a link by another name
        return (root / path).resolve() == root.resolve() / path
    if entry.mode & 0o170000 == _LINK:
        return False
    try:
        content = files.read(path)
    except OSError:
        return False  # an import says so itself
    blob = hashlib.sha1(usedforsecurity=False)
    blob.update(b"blob %d\0" % len(content))
    blob.update(content)
    return blob.digest() != entry.digest


def _entries(data: bytes) -> Iterator[tuple[str, _Entry]]:
    """The entries of an index, by path. Raises ValueError and IndexError for any other data."""
    version, count = (int.from_bytes(data[at : at + 4]) for at in (4, 8))
    if data[:4] != b"DIRC" or not 2 <= version <= _PREFIXED:
        raise ValueError("no index that is known")
    at, name = 12, b""
    for _ in range(count):
        head = data[at : at + _FIXED]
        begins = at + _FIXED + 2 * bool(int.from_bytes(head[60:62]) & _EXTENDED)
        shared = b""
        if version == _PREFIXED:
            dropped, begins = _number(data, begins)
            shared = name[: len(name) - dropped]
        ends = data.index(b"\0", begins)
        name = shared + data[begins:ends]
        if len(name) > _LONGEST:
            raise ValueError("no path is that long")
        yield os.fsdecode(name), _Entry(int.from_bytes(head[24:28]), head[_DIGEST])
        at = ends + 1 if version == _PREFIXED else at + (ends - at + 8) // 8 * 8


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = (value + 1 << 7) + (data[at] & 127)
    return value, at + 1
