"""The action cache: keys to results, as REAPI ``ActionResult`` messages."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from kabuild.base.canonical import (
    int_field,
    message_field,
    parse_fields,
    repeated_field,
    text_field,
)
from kabuild.base.clock import Clock, SystemClock
from kabuild.base.errors import StoreError
from kabuild.base.fs import is_inside, remove_tree, replace_in, write_new
from kabuild.base.reading import NO_FILE, open_plain, read_open
from kabuild.base.seal import Seal, Trust
from kabuild.model.action import OUTPUT_ROOT
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import merkle
from kabuild.store.cas import Cas
from kabuild.store.eviction import TOUCH_AFTER, note_use
from kabuild.store.faults import store_error, writing
from kabuild.store.scratch import Scratch
from kabuild.store.sealed_entry import MOST_BYTES, parts, sealed, trust_of
from kabuild.store.trees import parse_tree

_PREFIX = f"{OUTPUT_ROOT}/"
_NOWHERE = f"{os.devnull}/ac"
"""A directory that there never is, until a first result is stored without a key of the user's."""


class ActionCache(Protocol):
    """Results by key. A returned result is complete: all its blobs are present."""

    def get(self, key: Digest) -> ActionResult | None:
        """The result of the action with this key, or None. Raises StoreError."""
        ...

    def put(self, key: Digest, result: ActionResult) -> None:
        """Store ``result``, whose blobs are in the CAS. Raises StoreError."""
        ...

    def put_message(self, key: Digest, message: bytes) -> None:
        """Store a result as ``decode`` reads it; its blobs and trees are in the CAS.

        Raises StoreError.
        """
        ...


class DiskActionCache:
    """An ActionCache laid out as Bazel's disk cache: ``ac/ab/abcd...`` beside ``cas/``.

    Only entries with this user's seal count; others are treated as absent, with one warning.
    Without a key of the user's, results last as long as the process, and ``ac/`` stays as it is.
    """

    def __init__(
        self,
        root: Path,
        scratch: Scratch,
        cas: Cas,
        seal: Seal,
        *,
        clock: Clock | None = None,
        warn: Callable[[str], None] = lambda _: None,
        added: Callable[[int], None] = lambda _: None,
        distrusted: Callable[[str, Trust], None] = lambda *_: None,
    ) -> None:
        """``warn`` is called with damage, ``added`` with the size of every new entry.

        ``distrusted`` gets the hash of each key whose entry lacks this user's seal.
        """
        self._root = str(root)
        self._entries = _NOWHERE if seal.problem else f"{root}/ac"
        self._scratch = scratch
        self._cas = cas
        self._seal = seal
        self._distrusted = distrusted
        self._clock = clock or SystemClock()
        self._warn = warn
        self._added = added

    def path_of(self, key: Digest) -> str:
        """The path of an entry."""
        return f"{self._entries}/{key.hash[:2]}/{key.hash}"

    def get(self, key: Digest) -> ActionResult | None:
        """The result of the action with this key, or None.

        An entry that was changed, has no seal, or refers to a missing blob, is removed.
        """
        path = self.path_of(key)
        try:
            with open_plain(Path(path)) as file:
                data = read_open(file, Path(path), MOST_BYTES)
                age = time.time() - os.fstat(file.fileno()).st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in NO_FILE:
                why = error.strerror or error
                self._warn(f"dropped a damaged entry of the action cache: {key.hash}: {why}")
                self._remove(path)
                return None
            raise store_error(error, self._root) from error
        trust = trust_of(data, key.hash, self._seal)
        if trust in {Trust.UNSEALED, Trust.FOREIGN}:
            self._distrusted(key.hash, trust)
            if trust is Trust.UNSEALED:  # another user's entry may still be useful to them
                self._remove(path)
            return None
        # Note the use before checking the blobs: from now on they stay.
        if age > TOUCH_AFTER and not note_use(self._root, path):
            return None
        try:
            if trust is Trust.FALSE:
                raise ValueError("it was changed after it was sealed")
            result = decode(parts(data)[0], self._cas)
        except ValueError as error:
            self._warn(f"dropped a damaged entry of the action cache: {key.hash}: {error}")
            result = None
        if result is None or self._cas.missing(blobs_of(result)):
            self._remove(path)
            return None
        return result

    def _remove(self, path: str) -> None:
        with contextlib.suppress(OSError):
            remove_tree(Path(path))

    def put(self, key: Digest, result: ActionResult) -> None:
        """Remember ``result``, whose blobs are in the CAS."""
        self.put_message(key, encode(result, self._cas, ended=self._clock.wall()))

    def put_message(self, key: Digest, message: bytes) -> None:
        """Remember a result as ``decode`` reads it; its blobs and trees are in the CAS."""
        data = sealed(message, key.hash, self._seal)
        with writing(self._root):
            if self._entries == _NOWHERE:
                self._entries = self._scratch.name("results")
            temporary = self._scratch.name("entry")
            try:
                write_new(temporary, data)
                replace_in(temporary, self.path_of(key))
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        self._added(len(data))


def blobs_of(result: ActionResult) -> Iterator[Digest]:
    """The blobs of a result, except its trees."""
    for file in result.files:
        yield file.digest
    if result.stdout:
        yield result.stdout
    if result.stderr:
        yield result.stderr


def encode(result: ActionResult, cas: Cas, *, ended: float) -> bytes:
    """The ``ActionResult`` message; trees of output directories are put into ``cas``.

    ``ended`` is the end of the run in seconds since 1970.
    """
    in_directories = tuple(f"{path}/" for path in result.directories)
    files = (
        text_field(1, _PREFIX + file.path)
        + message_field(2, file.digest.to_wire())
        + int_field(4, int(file.executable))
        for file in sorted(result.files, key=lambda file: file.path)
        if not file.path.startswith(in_directories)
    )
    directories = (
        merkle.output_directory(_PREFIX + path, cas.put(tree_of(result, path).tree_message()))
        for path in sorted(result.directories)
    )
    return (
        repeated_field(2, files)
        + repeated_field(3, directories)
        + int_field(4, result.exit_code % (1 << 64))
        + (message_field(6, result.stdout.to_wire()) if result.stdout else b"")
        + (message_field(8, result.stderr.to_wire()) if result.stderr else b"")
        + message_field(9, _metadata(ended - result.seconds, ended))
    )


def tree_of(result: ActionResult, path: str) -> merkle.Directory:
    """One output directory of a result."""
    return merkle.build(
        (name, merkle.FileNode(file.digest, file.executable)) for name, file in result.below(path)
    )


def decode(data: bytes, cas: Cas) -> ActionResult | None:
    """The result in an ``ActionResult`` message; None if one of its trees is missing.

    Raises ``ValueError`` for anything else, also without the metadata, which comes last: so a
    truncated entry is never valid.
    """
    files: list[OutputFile] = []
    directories: list[str] = []
    exit_code, seconds = 0, None
    digests: dict[int, Digest] = {}
    for number, value in parse_fields(data):
        if number == 4 and isinstance(value, int):
            exit_code = value if value < 1 << 63 else value - (1 << 64)
        elif isinstance(value, int):
            continue
        elif number == 2:
            files.append(_output_file(value))
        elif number == 3:
            path, inside = _output_directory(value, cas)
            if inside is None:
                return None
            directories.append(path)
            files.extend(inside)
        elif number in {6, 8}:
            digests[number] = Digest.from_wire(value)
        elif number == 9:
            seconds = _seconds(value)
    if seconds is None:
        msg = "no execution metadata"
        raise ValueError(msg)
    files.sort(key=lambda file: file.path)
    return ActionResult(
        exit_code,
        tuple(files),
        stdout=digests.get(6),
        stderr=digests.get(8),
        seconds=seconds,
        directories=tuple(directories),
    )


def _output_file(data: bytes) -> OutputFile:
    fields = dict(parse_fields(data))
    digest = fields.get(2, 0)
    if isinstance(digest, int):
        msg = "an output file without digest"
        raise ValueError(msg)
    return OutputFile(_path(fields), Digest.from_wire(digest), bool(fields.get(4, 0)))


def _output_directory(data: bytes, cas: Cas) -> tuple[str, list[OutputFile] | None]:
    """(path, files); files is None if the tree is missing."""
    fields = dict(parse_fields(data))
    tree = fields.get(3, 0)
    if isinstance(tree, int):
        msg = "an output directory without tree"
        raise ValueError(msg)
    path = _path(fields)
    try:
        root = parse_tree(cas.get(Digest.from_wire(tree)))
    except StoreError:
        return path, None
    return path, [OutputFile(f"{path}/{p}", n.digest, n.executable) for p, n in root.walk()]


def _path(fields: dict[int, int | bytes]) -> str:
    path = fields.get(1, b"")
    name = b"" if isinstance(path, int) else path
    inside = name.decode().removeprefix(_PREFIX)
    if not name.startswith(_PREFIX.encode()) or not is_inside(inside):
        msg = f"an output outside '{_PREFIX}': {path!r}"
        raise ValueError(msg)
    return inside


def _metadata(started: float, ended: float) -> bytes:
    """``ExecutedActionMetadata``: the worker, and the times of start and end."""
    times = {number: merkle.duration(started) for number in (3, 7)}
    times |= {number: merkle.duration(ended) for number in (4, 8)}
    return text_field(1, "local") + b"".join(
        message_field(number, times[number]) for number in sorted(times)
    )


def _seconds(data: bytes) -> float:
    """The time of the run, to the microsecond."""
    fields = dict(parse_fields(data))
    started, ended = fields.get(7, b""), fields.get(8, b"")
    if isinstance(started, int) or isinstance(ended, int):
        msg = "bad times in the execution metadata"
        raise ValueError(msg)
    return round(merkle.parse_duration(ended) - merkle.parse_duration(started), 6)
