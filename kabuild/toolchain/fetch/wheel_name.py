"""Wheels' file names: what they say of version, Python and machine."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from kabuild.toolchain.distributions import normalise
from kabuild.toolchain.machine import architecture

_NAME = re.compile(
    r"(?P<name>[^-]+)-(?P<version>[^-]+)(-\d[^-]*)?-(?P<python>[^-]+)-(?P<abi>[^-]+)"
    r"-(?P<platform>[^-]+)\.whl"
)
_SEPARATORS = re.compile(r"[._-]")


@dataclass(frozen=True)
class WheelName:
    """The parts of ``nvidia_nvvm-13.0.88-py3-none-manylinux2014_x86_64.whl``."""

    name: str
    version: str
    pythons: frozenset[str]
    abis: frozenset[str]
    platforms: frozenset[str]

    @classmethod
    def parse(cls, file: str) -> WheelName | None:
        """None for what is no wheel."""
        match = _NAME.fullmatch(file)
        if match is None:
            return None
        pythons, abis, platforms = (
            frozenset(match[part].split(".")) for part in ("python", "abi", "platform")
        )
        return cls(normalise(match["name"]), match["version"], pythons, abis, platforms)

    def is_version(self, version: str) -> bool:
        """Whether it is of that version; ``1.0+cpu`` may be spelt ``1.0_cpu`` in it."""
        return _same(self.version) == _same(version)

    def fits(self, machine: str) -> bool:
        """Whether its files serve a kind of machine, with glibc and the running Python."""
        major, minor = sys.version_info[:2]
        pythons = {f"py{major}", f"cp{major}{minor}"}
        if "abi3" in self.abis:  # which later Pythons keep
            pythons |= {f"cp{major}{older}" for older in range(2, minor)}
        if not self.pythons & pythons or not self.abis & {"none", "abi3", f"cp{major}{minor}"}:
            return False
        arch = architecture(machine)
        return any(
            platform == "any"
            or (platform.startswith(("manylinux", "linux_")) and platform.endswith(f"_{arch}"))
            for platform in self.platforms
        )


def _same(version: str) -> str:
    return _SEPARATORS.sub(".", version.replace("+", ".")).lower()
