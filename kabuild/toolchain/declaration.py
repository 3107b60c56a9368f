"""The content of a ``[[toolchain]]`` table, as values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.base.errors import Position
from kabuild.model.label import Label
from kabuild.model.target import Target
from kabuild.toolchain.machine import ANY, MACHINES


@dataclass(frozen=True)
class Environment:
    """The running Python with these installed distributions and their dependencies."""

    distributions: tuple[str, ...]


@dataclass(frozen=True)
class Distribution:
    """One installed Python distribution, of exactly this version."""

    name: str
    version: str


@dataclass(frozen=True)
class LocalTree:
    """A directory of this machine, adopted by content.

    ``paths`` are its pinned parts, files or directories; empty means all.
    """

    home: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """The files of archives that are kept, and additions to them.

    Attributes:
        strip_prefix: the directory that becomes the root; empty for the whole archive.
        paths: the parts of the root that are kept, files or directories; empty for all.
        links: symbolic links to create: by path, the target relative to the link's directory.
    """

    strip_prefix: str = ""
    paths: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict, hash=False)

    def kept(self, path: str) -> str | None:
        """The place of an archive's ``path``; None if it is left out, "" for the root."""
        if self.strip_prefix:
            if path == self.strip_prefix:
                return ""
            prefix = f"{self.strip_prefix}/"
            if not path.startswith(prefix):
                return None
            path = path.removeprefix(prefix)
        if not self.paths or not path:
            return path
        inside = any(path == part or path.startswith(f"{part}/") for part in self.paths)
        return path if inside else None


@dataclass(frozen=True)
class Fetched:
    """Files that are fetched and unpacked into one tree.

    Attributes:
        kind: ``pypi``, ``deb`` or ``archive``.
        requirements: ``name==version`` of wheels, ``name=version`` of packages, a URL.
        machines: the machines for which files are locked.
        sha256: of the archive, if declared; those of wheels and packages are only in the lock.
    """

    kind: str
    requirements: tuple[str, ...]
    layout: Layout = field(default_factory=Layout)
    machines: tuple[str, ...] = MACHINES
    sha256: str = ""


Pin = Environment | Distribution | LocalTree | Fetched


def names_of(declarations: Iterable[Declaration]) -> Mapping[Label, str]:
    """What to call each: its name, or its label where several have that name."""
    labels = {item.label for item in declarations}
    counts = Counter(label.name for label in labels)
    return {label: label.name if counts[label.name] == 1 else label.short for label in labels}


@dataclass(frozen=True)
class Declaration:
    """One declared toolchain: its tools by role and exactly one pin.

    ``platforms`` lists where it can be used; empty means everywhere. ``requires`` are paths that
    its tree must hold; ``a|b`` is either of two.
    """

    label: Label
    role: str
    pin: Pin
    position: Position
    platforms: tuple[str, ...] = ()
    doc: str = ""
    requires: tuple[str, ...] = ()

    @classmethod
    def of(cls, target: Target) -> Declaration:
        """The declaration in a validated target of kind ``toolchain``."""
        attrs = target.attrs
        return cls(
            target.label,
            attrs["role"],
            _pin(attrs),
            target.position,
            attrs["platforms"],
            attrs["doc"] or "",
            attrs["requires"],
        )

    def supports(self, platform: str) -> bool:
        """Whether it can be used on the platform of that name."""
        return not self.platforms or platform in self.platforms

    @property
    def kind(self) -> str:
        """The word for its pin, as in BUILD.toml."""
        pin = self.pin
        if isinstance(pin, Fetched):
            return pin.kind
        names = {Environment: "environment", Distribution: "distribution", LocalTree: "local"}
        return names[type(pin)]


def _pin(attrs: Mapping[str, Any]) -> Pin:
    if attrs["environment"]:
        return Environment(attrs["environment"])
    if attrs["distribution"]:
        return Distribution(attrs["distribution"], attrs["version"])
    if attrs["local"]:
        return LocalTree(attrs["local"], attrs["paths"])
    layout = Layout(attrs["strip_prefix"] or "", attrs["paths"], dict(attrs["links"]))
    if attrs["archive"]:
        machines = attrs["machines"] or (ANY,)
        return Fetched("archive", (attrs["archive"],), layout, machines, attrs["sha256"])
    kind = "pypi" if attrs["pypi"] else "deb"
    return Fetched(kind, attrs[kind], layout, attrs["machines"] or MACHINES)
