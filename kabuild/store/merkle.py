"""Trees and commands as canonical messages of the Remote Execution API, the base of keys.

Entries are sorted by name in code-point order, without duplicates, as REAPI demands: equal trees
have equal bytes here, in any other client, and in any remote cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from kabuild.base.canonical import (
    bytes_field,
    int_field,
    message_field,
    parse_fields,
    repeated_field,
    text_field,
)
from kabuild.base.fs import is_inside
from kabuild.model.digest import Digest


@dataclass(frozen=True)
class FileNode:
    """A file by content; ``executable`` is its owner's x bit."""

    digest: Digest
    executable: bool = False

    def to_wire(self, name: str) -> bytes:
        """REAPI's ``FileNode``."""
        return (
            text_field(1, name)
            + message_field(2, self.digest.to_wire())
            + int_field(4, int(self.executable))
        )


@dataclass(frozen=True)
class Directory:
    """A directory by content: names to files and directories.

    In the key: names, contents and x bits. Not in the key: times, owners, other modes.
    """

    files: Mapping[str, FileNode]
    directories: Mapping[str, Directory]

    @cached_property
    def wire(self) -> bytes:
        """REAPI's ``Directory``."""
        files = (self.files[name].to_wire(name) for name in sorted(self.files))
        return repeated_field(1, files) + repeated_field(
            2,
            (
                text_field(1, name) + message_field(2, self.directories[name].digest.to_wire())
                for name in sorted(self.directories)
            ),
        )

    @cached_property
    def digest(self) -> Digest:
        """The digest of the message."""
        return Digest.of(self.wire)

    def walk(self, prefix: str = "") -> Iterator[tuple[str, FileNode]]:
        """Every file with its relative path, sorted within each directory."""
        for name in sorted(self.files):
            yield prefix + name, self.files[name]
        for name in sorted(self.directories):
            yield from self.directories[name].walk(f"{prefix}{name}/")

    def all_directories(self) -> Iterator[Directory]:
        """This directory and all below it, without duplicates, parents first."""
        seen: dict[Digest, None] = {}
        queue = [self]
        for directory in queue:
            if directory.digest not in seen:
                seen[directory.digest] = None
                yield directory
                queue.extend(directory.directories[name] for name in sorted(directory.directories))

    def tree_message(self) -> bytes:
        """REAPI's ``Tree``: the root, then every other directory once."""
        root, *children = self.all_directories()
        return message_field(1, root.wire) + repeated_field(2, (child.wire for child in children))


Node = FileNode | Directory
_Draft = dict[str, "Node | _Draft"]


def build(entries: Iterable[tuple[str, Node]]) -> Directory:
    """The directory that holds every entry at its path; directories are merged.

    Raises ``ValueError`` for a path outside the root, and for conflicting entries.
    """
    root: _Draft = {}
    for path, node in entries:
        if not is_inside(path):
            msg = f"input path '{path}' is not below the input root"
            raise ValueError(msg)
        *parents, name = path.split("/")
        here = root
        for parent in parents:
            here = _enter(here, parent, path)
        _place(here, name, node, path)
    return _freeze(root)


def platform_message(properties: Iterable[tuple[str, str]]) -> bytes:
    """REAPI's ``Platform``: properties sorted by name, then value."""
    return repeated_field(
        1, (text_field(1, name) + text_field(2, value) for name, value in sorted(properties))
    )


def command_message(
    argv: Iterable[str],
    env: Mapping[str, str],
    output_paths: Iterable[str],
    platform: bytes,
    *,
    directory: str = "",
) -> bytes:
    """REAPI's ``Command``. ``directory`` is its working directory; empty for the input root."""
    return (
        repeated_field(1, (argument.encode() for argument in argv))
        + repeated_field(2, (text_field(1, k) + text_field(2, env[k]) for k in sorted(env)))
        + message_field(5, platform)
        + text_field(6, directory)
        + repeated_field(7, (path.encode() for path in sorted(output_paths)))
    )


def action_message(
    command: Digest,
    input_root: Digest,
    timeout: float,
    platform: bytes,
    *,
    cacheable: bool = True,
) -> bytes:
    """REAPI's ``Action``. Its digest is the action's key. ``timeout`` is in seconds."""
    return (
        message_field(1, command.to_wire())
        + message_field(2, input_root.to_wire())
        + message_field(6, duration(timeout))
        + int_field(7, int(not cacheable))
        + message_field(10, platform)
    )


def duration(seconds: float) -> bytes:
    """``google.protobuf.Duration`` or ``Timestamp``, for times >= 0, to the microsecond.

    A float cannot represent a time of day more precisely.
    """
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return int_field(1, whole) + int_field(2, micros * 1000)


def parse_duration(data: bytes) -> float:
    """Seconds of a ``Duration`` or ``Timestamp``. Raises ``ValueError``."""
    fields = dict(parse_fields(data))
    whole, nanos = fields.get(1, 0), fields.get(2, 0)
    if not isinstance(whole, int) or not isinstance(nanos, int):
        msg = "not a Duration"
        raise ValueError(msg)
    return whole + nanos / 1_000_000_000


def output_directory(path: str, tree: Digest) -> bytes:
    """REAPI's ``OutputDirectory``."""
    return text_field(1, path) + bytes_field(3, tree.to_wire())


def _enter(here: _Draft, name: str, path: str) -> _Draft:
    """The draft of the directory ``name``, thawing one that was placed whole."""
    child = here.setdefault(name, {})
    if isinstance(child, FileNode):
        msg = f"input '{path}' lies below another input that is a file"
        raise ValueError(msg)
    if isinstance(child, Directory):
        child = {**child.files, **child.directories}
        here[name] = child
    return child


def _place(here: _Draft, name: str, node: Node, path: str) -> None:
    there = here.get(name)
    if there is None:
        here[name] = node
    elif isinstance(node, Directory) and not isinstance(there, FileNode):
        inside = _enter(here, name, path)
        children: dict[str, Node] = {**node.files, **node.directories}
        for child, content in children.items():
            _place(inside, child, content, f"{path}/{child}")
    elif there != node:
        msg = f"two different inputs at '{path}'"
        raise ValueError(msg)


def _freeze(draft: _Draft) -> Directory:
    files: dict[str, FileNode] = {}
    directories: dict[str, Directory] = {}
    for name, node in draft.items():
        if isinstance(node, FileNode):
            files[name] = node
        else:
            directories[name] = node if isinstance(node, Directory) else _freeze(node)
    return Directory(files, directories)


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        msg = "a number where a message was expected"
        raise ValueError(msg)
    return value
