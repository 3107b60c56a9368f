"""Which foreign results can be stored: all that is wrong with one is found before it is put."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kabuild.model.result import ActionResult
from kabuild.store import merkle
from kabuild.store.action_cache import decode, encode
from kabuild.store.cas import Cas

_LONGEST_NAME = 255
_LONGEST_PATH = 4095
"""Bytes that Linux allows."""


def storable(result: ActionResult, cas: Cas, *, ended: float) -> bytes:
    """The entry of a foreign result, whose blobs are in ``cas``. Its trees are put there.

    Raises ``ValueError`` if its outputs could not lie in one directory, or if the entry would be
    read as another result.
    """
    check_result(result)
    entry = encode(result, cas, ended=ended)
    ordered = replace(result, directories=tuple(sorted(result.directories)))
    if decode(entry, cas) != ordered:
        raise ValueError("it would be read as another result")
    return entry


def decode_foreign(entry: bytes, cas: Cas) -> ActionResult | None:
    """A result that another machine stored; None if ``cas`` lacks a tree of its outputs.

    Raises ``ValueError`` for one that no run of an action has.
    """
    result = decode(entry, cas)
    if result is not None:
        check_result(result)
    return result


def check_result(result: ActionResult) -> None:
    """Raise ``ValueError`` for a result that no run of an action has."""
    if result.seconds < 0:
        raise ValueError("it ends before it starts")
    outputs = {file.path for file in result.files}
    if len(outputs) < len(result.files) or len({*result.directories}) < len(result.directories):
        raise ValueError("it has an output twice")
    for path in (*outputs, *result.directories):
        _check_path(path)
    merkle.build(_nodes(result))  # raises for outputs in each other's way


def _nodes(result: ActionResult) -> Iterator[tuple[str, merkle.Node]]:
    for path in result.directories:
        yield path, merkle.Directory({}, {})
    for file in result.files:
        yield file.path, merkle.FileNode(file.digest, file.executable)


def _check_path(path: str) -> None:
    """Raise ``ValueError`` for a path that no file system holds."""
    names = path.split("/")
    if not {"", ".", ".."}.isdisjoint(names) or "\0" in path:
        raise ValueError(f"an output at {path[:80]!r}")
    if len(path.encode()) > _LONGEST_PATH or any(len(n.encode()) > _LONGEST_NAME for n in names):
        raise ValueError(f"an output with too long a name: {path[:80]!r}...")
