"""The closure of an entry of the action cache: the blobs that it needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.canonical import parse_fields
from kabuild.base.reading import read_plain
from kabuild.model.digest import Digest
from kabuild.store.trees import parse_tree

Get = Callable[[Digest], bytes]
"""Bytes of a blob. Raises ``LookupError``."""


@dataclass(frozen=True)
class Promise:
    """The blobs of one result.

    Attributes:
        outputs: its files, texts and trees, without which the result is lost.
        origin: its Action and Command, if known.
    """

    outputs: frozenset[Digest]
    origin: frozenset[Digest]


class QuietBlobs:
    """Reads blobs of the store at ``root`` without verifying them or noting a use."""

    def __init__(self, root: Path) -> None:
        self._blobs = f"{root}/cas"

    def __call__(self, digest: Digest) -> bytes:
        """The bytes. Raises ``LookupError``."""
        try:
            return read_plain(Path(self._path(digest)))
        except OSError as error:
            raise LookupError(digest) from error

    def has(self, digest: Digest) -> bool:
        """Whether the blob is there, with the right size."""
        try:
            return os.stat(self._path(digest)).st_size == digest.size  # noqa: PTH116 - many
        except OSError:
            return False

    def _path(self, digest: Digest) -> str:
        return f"{self._blobs}/{digest.hash[:2]}/{digest.hash}"


def read_promise(key: str, entry: bytes, get: Get) -> Promise:
    """The closure of ``entry``, which is filed under the hash ``key``.

    Raises ``ValueError`` for a malformed entry or tree, and ``LookupError`` for a missing tree.
    """
    files, trees = named_by(entry)
    inside = {digest for tree in trees for digest in files_of(tree, get)}
    return Promise(frozenset({*files, *trees, *inside}), frozenset(_origin(key, get)))


def named_by(entry: bytes) -> tuple[list[Digest], list[Digest]]:
    """The files and texts in an entry itself, and its trees. Raises ``ValueError``."""
    files: list[Digest] = []
    trees: list[Digest] = []
    complete = False
    for number, value in parse_fields(entry):
        if isinstance(value, int):
            continue
        if number == 2:
            files.append(_digest(value, 2))
        elif number == 3:
            trees.append(_digest(value, 3))
        elif number in {6, 8}:
            files.append(Digest.from_wire(value))
        complete |= number == 9
    if not complete:
        raise ValueError("no execution metadata")
    return files, trees


def trees_named_by(entry: bytes) -> list[Digest]:
    """The trees in an entry itself. Raises ``ValueError``."""
    return [
        _digest(value, 3)
        for number, value in parse_fields(entry)
        if number == 3 and isinstance(value, bytes)
    ]


def files_of(tree: Digest, get: Get) -> Iterator[Digest]:
    """The files in an output directory. Raises as ``read_promise``."""
    yield from (node.digest for _, node in parse_tree(get(tree)).walk())


def _origin(key: str, get: Get) -> Iterator[Digest]:
    try:
        action = get(Digest(key, 0))
        command = dict(parse_fields(action))[1]
        if isinstance(command, bytes):
            yield Digest(key, len(action))
            yield Digest.from_wire(command)
    except (LookupError, ValueError):
        return


def _digest(message: bytes, number: int) -> Digest:
    value = dict(parse_fields(message)).get(number, 0)
    if isinstance(value, int):
        raise ValueError("an output without digest")
    return Digest.from_wire(value)
