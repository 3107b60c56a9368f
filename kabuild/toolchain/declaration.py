"""What a ``[[toolchain]]`` declares, as values."""

from __future__ import annotations

from dataclasses import dataclass

from kabuild.base.errors import Position
from kabuild.model.label import Label
from kabuild.model.target import Target


@dataclass(frozen=True)
class Environment:
    """The running Python with these installed distributions and what they need."""

    distributions: tuple[str, ...]


@dataclass(frozen=True)
class Distribution:
    """One installed Python distribution, of exactly this version."""

    name: str
    version: str


@dataclass(frozen=True)
class LocalTree:
    """A directory of this machine, adopted by content.

    ``paths`` are the parts of it that count, files or directories; empty means all.
    """

    home: str
    paths: tuple[str, ...] = ()


Pin = Environment | Distribution | LocalTree


@dataclass(frozen=True)
class Declaration:
    """One declared toolchain: its tools by role and exactly one pin.

    ``platforms`` lists where it can be used; empty means everywhere.
    """

    label: Label
    role: str
    pin: Pin
    position: Position
    platforms: tuple[str, ...] = ()

    @classmethod
    def of(cls, target: Target) -> Declaration:
        """The declaration in a validated target of kind ``toolchain``."""
        attrs = target.attrs
        pin: Pin
        if attrs["environment"]:
            pin = Environment(attrs["environment"])
        elif attrs["distribution"]:
            pin = Distribution(attrs["distribution"], attrs["version"])
        else:
            pin = LocalTree(attrs["local"], attrs["paths"])
        return cls(target.label, attrs["role"], pin, target.position, attrs["platforms"])

    def supports(self, platform: str) -> bool:
        """Whether it can be used on the platform of that name."""
        return not self.platforms or platform in self.platforms
