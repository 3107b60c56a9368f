"""Where an action runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kabuild.base.errors import Reason, UsageError
from kabuild.base.suggest import suggest

PLATFORMS = ("cpu", "cuda", "rocm")

ARCHITECTURES: Mapping[str, tuple[str, ...]] = {
    "cuda": (
        *("sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"),
        *("sm_100", "sm_100a", "sm_103", "sm_120", "sm_121"),
    ),
    "rocm": (
        *("gfx906", "gfx908", "gfx90a", "gfx942", "gfx950"),
        *("gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201", "gfx1250"),
    ),
}
"""Names to suggest, by platform. Which of them compile is the business of toolchains."""

_PATTERNS = {"cuda": r"sm_[1-9][0-9]{1,2}[af]?", "rocm": r"gfx[1-9][0-9a-f]{2,3}"}


@dataclass(frozen=True)
class Platform:
    """``cpu``, ``cuda`` or ``rocm`` with what cannot be hashed but can change a result.

    Properties (architecture, device model, driver, clock policy, memory limit) are sorted
    and in every key, because a verdict from one device says nothing about another.
    """

    name: str
    properties: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", tuple(sorted(self.properties)))

    @classmethod
    def parse(cls, text: str) -> Platform:
        """What ``--platform=NAME[:ARCH]`` asks for. Raises UsageError(UNKNOWN_PLATFORM)."""
        name, colon, arch = text.partition(":")
        if name not in PLATFORMS:
            raise UsageError(
                Reason.UNKNOWN_PLATFORM,
                f"no platform '{name}'",
                hint=_meant(name) or f"platforms: {', '.join(PLATFORMS)}",
            )
        pattern = _PATTERNS.get(name)
        if (colon and not arch) or (arch and pattern and not re.fullmatch(pattern, arch)):
            known = ARCHITECTURES.get(name, ())
            raise UsageError(
                Reason.UNKNOWN_PLATFORM,
                f"'{text}' names no architecture of platform {name}",
                hint=suggest(arch, known) or f"such as: {', '.join(known) or name}",
            )
        return cls(name, (("arch", arch),) if arch else ())

    def get(self, key: str, default: str = "") -> str:
        """The value of one property."""
        return dict(self.properties).get(key, default)

    def with_properties(self, **extra: str) -> Platform:
        """This platform with properties added or replaced."""
        return Platform(self.name, tuple({**dict(self.properties), **extra}.items()))

    def __str__(self) -> str:
        arch = self.get("arch")
        return f"{self.name}:{arch}" if arch else self.name


def _meant(name: str) -> str:
    """A hint for something that is no platform but perhaps the architecture of one."""
    for platform, pattern in _PATTERNS.items():
        if re.fullmatch(pattern, name):
            return f"did you mean '{platform}:{name}'?"
    return suggest(name, PLATFORMS)
