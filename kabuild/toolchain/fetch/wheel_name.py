"""Wheels' file names: version, Python and machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from packaging.tags import Tag, compatible_tags, cpython_tags, platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from kabuild.toolchain.machine import architecture, this_machine


@dataclass(frozen=True)
class WheelName:
    """The parts of ``nvidia_nvvm-13.0.88-py3-none-manylinux2014_x86_64.whl``."""

    name: str
    version: Version
    tags: frozenset[Tag]

    @classmethod
    def parse(cls, file: str) -> WheelName | None:
        """Parse a file name; None for other files."""
        try:
            name, version, _, tags = parse_wheel_filename(file)
        except (InvalidWheelFilename, InvalidVersion):
            return None
        return cls(name, version, tags)

    def is_version(self, version: str) -> bool:
        """Whether it is of that version, in any spelling."""
        try:
            return self.version == Version(version)
        except InvalidVersion:
            return False

    def fits(self, machine: str) -> bool:
        """Whether it can be installed on a kind of machine: its C library, the running Python.

        Machines of other architectures are assumed to have this one's C library.
        """
        return not self.tags.isdisjoint(_tags(architecture(machine)))


@cache
def _tags(arch: str) -> frozenset[Tag]:
    """All tags that the running Python supports on an architecture."""
    platforms = [*_platforms(arch)]
    return frozenset([*cpython_tags(platforms=platforms), *compatible_tags(platforms=platforms)])


def _platforms(arch: str) -> Iterator[str]:
    """``manylinux_2_36_x86_64`` and older tags that this machine's C library supports."""
    mine = architecture(this_machine())
    for tag in platform_tags():
        if tag.endswith(f"_{mine}"):
            yield f"{tag.removesuffix(mine)}{arch}"
