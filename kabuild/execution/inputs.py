"""From artifacts to input roots: what an action reads, by content."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.errors import InfraError, KabuildError, LoadError, Reason
from kabuild.base.sizes import show_size
from kabuild.base.suggest import suggest
from kabuild.model.action import Action, Artifact, Literal, Root, Source, Toolchain
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult
from kabuild.store.cas import BlobMissingError, Cas
from kabuild.store.file_index import FileIndex, Signature
from kabuild.store.merkle import Directory, FileNode, Node, build

SKIPPED_NAMES = frozenset({"__pycache__", ".git"})
"""Names that are skipped in source directories, since tools write them."""

_MOST_GIVEN = (10_000, 256 << 20)
"""Limits in files and bytes: of a solution, and of what a workspace declares."""

_MOST_DECLARED = (1_000_000, 64 << 30)
_MOST_FILE = 1 << 30
"""The limit of one file in bytes. Hashing more takes seconds, in which a build says nothing."""

_MOST_LEVELS = 100

TOOLCHAINS = ".kabuild/toolchains"
"""The directory of toolchain fingerprints in an input root."""


class MissingOutputError(InfraError):
    """An action needs an output that its producer did not make."""

    def __init__(self, producer: str, path: str) -> None:
        super().__init__(Reason.OUTPUT_MISSING, f"{producer} did not make '{path}'")
        self.producer = producer


@dataclass(frozen=True)
class _Snapshot:
    """A source as it was: its content, and the file signatures by host path."""

    node: Node
    signatures: Mapping[str, Signature]


Observed = Mapping[Source, Mapping[str, Signature]]
"""By source, its file signatures by host path."""


class Inputs:
    """Resolves the artifacts of one build; reads each source once.

    ``roots`` are the directories of the named source roots. Resolving only computes digests;
    ``supply`` copies content into the store, for the actions that will run.
    """

    def __init__(self, roots: Mapping[str, Path], index: FileIndex) -> None:
        self._roots = {name: os.path.realpath(path) for name, path in roots.items()}
        self._index = index
        self._snapshots: dict[Source, _Snapshot] = {}
        self._origins: dict[Digest, str | bytes] = {}
        self._literals: dict[bytes, FileNode] = {}
        self._toolchains: dict[tuple[Toolchain, ...], Directory] = {}

    def root(self, action: Action, produced: Mapping[str, ActionResult]) -> Directory:
        """The input root of ``action``; ``produced`` has the results of earlier actions.

        Raises LoadError(MISSING_FILE, ESCAPING_PATH) and MissingOutputError.
        """
        try:
            entries = [(path, self._node(item, produced)) for path, item in action.inputs]
        except LoadError as error:
            if error.reason is Reason.MISSING_FILE and action.advice:
                error.hint = "\n".join(filter(None, (error.hint, action.advice)))
            raise
        if action.toolchains:
            entries.append((TOOLCHAINS, self._fingerprints(action.toolchains)))
        try:
            return build(entries)
        except ValueError as error:
            raise LoadError(Reason.ESCAPING_PATH, f"{action.label}: {error}") from None

    def supply(self, root: Directory, cas: Cas) -> None:
        """Put the sources and literals of ``root`` into ``cas``; repair damaged blobs there.

        Raises InfraError(INPUT_CHANGED) if a source has changed since it was hashed, and
        BlobMissingError with all missing or damaged outputs of earlier actions.
        """
        lost: list[Digest] = []
        for digest in cas.unusable(node.digest for _, node in root.walk()):
            origin = self._origins.get(digest)
            if origin is None:
                lost.append(digest)
                continue
            if isinstance(origin, bytes):
                cas.put(origin)
                continue
            try:
                stored = cas.put_file(Path(origin))
            except OSError as error:
                raise _changed(origin) from error
            if stored != digest:
                raise _changed(origin)
        if lost:
            raise BlobMissingError(*lost)

    def observe(self, action: Action) -> Observed:
        """The file signatures of the sources of ``action``, just before it runs."""
        sources = [item for _, item in action.inputs if isinstance(item, Source)]
        return {source: self._look(source) for source in sources}

    def check_unchanged(self, before: Observed) -> None:
        """Raise InfraError(INPUT_CHANGED) if a source changed since ``before``.

        The result would still be right for its key, since it was made from the store; but users
        would read it as the verdict on the files now on disk. A source that changed before the
        action began does not matter: a build sees each source as it first found it.
        """
        for source, seen in before.items():
            now = self._look(source)
            if now != seen and not self._only_touched(source, seen):
                raise _changed(min(dict(seen.items() ^ now.items())))

    def _look(self, source: Source) -> Mapping[str, Signature]:
        """The current file signatures of a source; empty if it cannot be read."""
        try:
            files = _files(source, self._host_path(source))
            return {path: Signature.of(status) for _, path, status in files}
        except (OSError, LoadError):
            return {}

    def _only_touched(self, source: Source, seen: Mapping[str, Signature]) -> bool:
        """Whether a source with new file signatures still has the resolved content."""
        first = self._snapshots[source]
        try:
            return seen == first.signatures and self._snapshot(source).node == first.node
        except (OSError, LoadError):
            return False

    def _node(self, item: Artifact, produced: Mapping[str, ActionResult]) -> Node:
        if isinstance(item, Source):
            snapshot = self._snapshots.get(item)
            if snapshot is None:
                try:
                    snapshot = self._snapshots[item] = self._snapshot(item)
                except OSError as error:
                    raise _unreadable(item, error) from None
            return snapshot.node
        if isinstance(item, Literal):
            return self._literal(item.data)
        result = produced.get(item.producer)
        if result is not None:
            if file := result.file(item.path):
                return FileNode(file.digest, file.executable)
            if below := result.below(item.path):
                return build((path, FileNode(f.digest, f.executable)) for path, f in below)
        raise MissingOutputError(item.producer, item.path)

    def _fingerprints(self, toolchains: tuple[Toolchain, ...]) -> Directory:
        """One directory for the many actions that use the same tools."""
        found = self._toolchains.get(toolchains)
        if found is None:
            found = self._toolchains[toolchains] = build(
                (f"{toolchain.name}.json", self._literal(toolchain.fingerprint))
                for toolchain in toolchains
            )
        return found

    def _literal(self, data: bytes) -> FileNode:
        node = self._literals.get(data)
        if node is None:
            node = self._literals[data] = FileNode(Digest.of(data))
            self._origins[node.digest] = data
        return node

    def _snapshot(self, source: Source) -> _Snapshot:
        host = self._host_path(source)
        signatures: dict[str, Signature] = {}
        entries: list[tuple[str, Node]] = []
        for relative, path, status in _files(source, host):
            digest, signatures[path] = self._index.digest(path, status)
            self._origins[digest] = path
            # Equal solutions have equal keys, whatever their file modes.
            runs = source.root != "user" and bool(status.st_mode & stat.S_IXUSR)
            entries.append((relative, FileNode(digest, runs)))
        if len(entries) == 1 and not entries[0][0]:
            return _Snapshot(entries[0][1], signatures)
        return _Snapshot(build(entries), signatures)

    def _host_path(self, source: Source) -> str:
        if source.root == "user":
            return source.path
        base = self._roots[source.root]
        host = f"{base}/{source.path}" if source.path else base
        if os.path.islink(host):  # noqa: PTH114 - Path objects cost more than the check
            _check_inside(host, base, source.path)
        return host


def _files(source: Source, host: str) -> Iterator[tuple[str, str, os.stat_result]]:
    """(relative path, host path, status) of every file; a source that is a file has the path ""."""
    try:
        status = os.stat(host)  # noqa: PTH116 - the hot path
    except (FileNotFoundError, NotADirectoryError):
        what = f"no file '{source.path}'{_where(source.root)}"
        raise LoadError(Reason.MISSING_FILE, what, hint=_meant(host)) from None
    if stat.S_ISREG(status.st_mode):
        _Bound(source).take(status.st_size, source.path)
        yield "", host, status
    elif stat.S_ISDIR(status.st_mode):
        yield from _walk(host, "", host, (), _Bound(source))
    else:
        raise _not_regular(source.path)


def _where(root: Root) -> str:
    """Where files of ``root`` lie, for people; a user's path says so itself."""
    if root == "user":
        return ""
    return f" in {root}" if root.startswith("@") else f" in the {root}"


class _Bound:
    """Limits of a source: ``--solution=/`` would be read for hours."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._entries, self._bytes = _MOST_GIVEN if source.root == "user" else _MOST_DECLARED

    def take(self, size: int, path: str) -> None:
        """Count one entry of ``size`` bytes, which errors call ``path``.

        Raises LoadError(TOO_LARGE).
        """
        if size > _MOST_FILE and self._source.root != "user":
            raise LoadError(
                Reason.TOO_LARGE,
                f"'{path}' is too large: it has {show_size(size)}, "
                f"and a file may have at most {show_size(_MOST_FILE)}",
                hint="remove it, or split it",
            )
        self._entries -= 1
        self._bytes -= size
        if self._entries < 0 or self._bytes < 0:
            entries, size = _MOST_GIVEN if self._source.root == "user" else _MOST_DECLARED
            raise LoadError(
                Reason.TOO_LARGE,
                f"'{self._source.path}' is too large: "
                f"it has more than {entries:,} files or {show_size(size)}",
                hint="give the kernel file, or the directory that holds it",
            )


def _meant(host: str) -> str:
    """A hint for a missing path: an existing name similar to its first missing part."""
    path = Path(host)
    while not path.parent.is_dir():
        path = path.parent
    with contextlib.suppress(OSError):
        names = {entry.name for entry in path.parent.iterdir()}
        if path.name not in names:  # or a file instead of a directory
            return suggest(path.name, names)
    return ""


def _walk(
    top: str, prefix: str, directory: str, above: tuple[str, ...], bound: _Bound
) -> Iterator[tuple[str, str, os.stat_result]]:
    """The files below ``directory``, sorted; links are followed while they stay inside."""
    with os.scandir(directory) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        relative = prefix + entry.name
        if entry.name in SKIPPED_NAMES:
            continue
        if len(above) > _MOST_LEVELS:
            what = f"{relative[:60]!r}... lies below more than {_MOST_LEVELS} directories"
            raise LoadError(Reason.TOO_LARGE, what)
        if not entry.name.isprintable():
            raise LoadError(
                Reason.BAD_ATTRIBUTE, f"{relative!r} has a name that is not printable UTF-8"
            )
        if entry.is_symlink():
            _check_inside(entry.path, top, relative)
        if entry.is_dir():
            real = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
            if f"{directory}/".startswith(f"{real}/") or real in above:
                raise LoadError(
                    Reason.ESCAPING_PATH, f"'{relative}' is a link to a directory around it"
                )
            bound.take(0, relative)
            yield from _walk(top, f"{relative}/", entry.path, (*above, real), bound)
        elif entry.is_file():
            status = entry.stat()
            bound.take(status.st_size, f"{top}/{relative}")
            yield relative, entry.path, status
        else:
            raise _not_regular(f"{top}/{relative}")


def _check_inside(link: str, top: str, shown: str) -> None:
    real = os.path.realpath(link)
    if not f"{real}/".startswith(f"{os.path.realpath(top)}/"):
        raise LoadError(
            Reason.ESCAPING_PATH,
            f"'{shown}' is a link to {real}, outside of its directory",
            hint="actions read hashed files only: copy the file instead",
        )
    if not os.path.exists(real):  # noqa: PTH110 - as above
        raise LoadError(Reason.MISSING_FILE, f"'{shown}' is a dangling link to {real}")


def _not_regular(path: str) -> LoadError:
    return LoadError(Reason.MISSING_FILE, f"'{path}' is neither a file nor a directory")


def _unreadable(source: Source, error: OSError) -> KabuildError:
    """The user's error if permission is denied, else the machine's."""
    what = f"{error.filename or source.path} cannot be read: {error.strerror}"
    if error.errno in {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT}:
        return LoadError(Reason.MISSING_FILE, what)
    return InfraError(Reason.NO_RESOURCES, what)


def _changed(path: str) -> InfraError:
    return InfraError(
        Reason.INPUT_CHANGED,
        f"'{path}' changed while an action was using it; nothing was judged",
        hint="run it again once nothing writes the file",
    )
