"""Reads untrusted directories, as messages of the Remote Execution API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kabuild.base.canonical import parse_fields
from kabuild.model.digest import Digest
from kabuild.store.merkle import Directory, FileNode

MOST_DEPTH = 256
MOST_MESSAGE = 64 << 20
"""The most bytes of a message, such as a ``Tree`` of 500,000 files."""
MOST_CHARACTERS = 1 << 26
"""The most characters of all paths of a tree, plus 64 for each: about 600,000 paths."""
MOST_OF_A_BUNDLE = 1 << 28
"""The same for all input roots of a bundle, each counted as often as it occurs."""

_PER_PATH = 64


@dataclass(frozen=True)
class _Read:
    """A directory, with the number of paths below it and their characters."""

    directory: Directory
    paths: int
    characters: int


class Trees:
    """Reads directories, and refuses those that are much larger when walked.

    Each distinct directory is parsed once, however often it occurs. The size of the walked tree is
    computed beforehand: thirty directories of two entries each can have a billion paths.
    """

    def __init__(self, get: Callable[[Digest], bytes], *, most: int = MOST_CHARACTERS) -> None:
        """``get`` returns messages, or raises ``KeyError``; ``most`` bounds all that is read."""
        self._get = get
        self._left = most
        self._known: dict[Digest, _Read] = {}

    def read(self, root: Digest) -> Directory:
        """The directory with this digest.

        Raises ``ValueError`` for anything but a directory, or beyond the bound, and whatever
        ``get`` raises.
        """
        read = self._read(root, depth=0)
        self._left -= read.characters
        if self._left < 0:
            raise _too_many()
        return read.directory

    def _read(self, digest: Digest, depth: int) -> _Read:
        if digest in self._known:
            return self._known[digest]
        if depth > MOST_DEPTH:
            raise ValueError("directories are nested too deeply")
        if digest.size > MOST_MESSAGE:
            raise ValueError(f"a directory of {digest.size} bytes")
        try:
            data = self._get(digest)
        except KeyError:
            raise ValueError(f"it lacks directory {digest}") from None
        files, below = _parse(data)
        paths = len(files) + len(below)
        characters = sum(_PER_PATH + len(name) for name in (*files, *below))
        directories: dict[str, Directory] = {}
        for name, child in below.items():
            inside = self._read(child, depth + 1)
            directories[name] = inside.directory
            paths += inside.paths
            characters += inside.characters + inside.paths * (len(name) + 1)
            if characters > self._left:
                raise _too_many()
        made = self._known[digest] = _Read(Directory(files, directories), paths, characters)
        return made


def parse_tree(data: bytes) -> Directory:
    """The root of a ``Tree`` message. Raises ``ValueError`` for anything else."""
    if len(data) > MOST_MESSAGE:
        raise ValueError(f"a Tree of {len(data)} bytes")
    fields = parse_fields(data)
    roots, children = ([_as_bytes(v) for n, v in fields if n == number] for number in (1, 2))
    if len(roots) != 1:
        raise ValueError("a Tree has one root")
    found = {Digest.of(part): part for part in (*roots, *children)}
    return Trees(found.__getitem__).read(Digest.of(roots[0]))


def read_directory(root: Digest, get: Callable[[Digest], bytes]) -> Directory:
    """The directory with the digest ``root``, whose messages ``get`` has.

    Raises ``ValueError`` for anything but a directory, and whatever ``get`` raises.
    """
    return Trees(get).read(root)


def _parse(data: bytes) -> tuple[dict[str, FileNode], dict[str, Digest]]:
    """The files and the directories that a ``Directory`` message names."""
    files: dict[str, FileNode] = {}
    directories: dict[str, Digest] = {}
    for number, value in parse_fields(data):
        if number not in {1, 2}:
            continue
        node = dict(parse_fields(_as_bytes(value)))
        name = _as_bytes(node.get(1, b"")).decode()
        digest = Digest.from_wire(_as_bytes(node.get(2, b"")))
        if not name or "/" in name or name in {".", ".."}:
            raise ValueError(f"bad name in a directory: {name!r}")
        if name in files or name in directories:
            raise ValueError(f"a directory has {name!r} twice")
        if number == 1:
            files[name] = FileNode(digest, bool(node.get(4, 0)))
        else:
            directories[name] = digest
    return files, directories


def _too_many() -> ValueError:
    return ValueError("its trees have too many paths")


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a message was expected")
    return value
