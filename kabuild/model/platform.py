"""Where an action runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kabuild.base.errors import Reason, UsageError
from kabuild.base.suggest import suggest

PLATFORMS = ("cpu", "cuda", "rocm")

_CUDA = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90")
_CUDA_FAMILIES = ("sm_100", "sm_103", "sm_120", "sm_121")

ARCHITECTURES: Mapping[str, tuple[str, ...]] = {
    "cuda": (
        *_CUDA,
        "sm_90a",
        *(name + kind for name in _CUDA_FAMILIES for kind in ("", "a", "f")),
    ),
    "rocm": (
        *("gfx906", "gfx908", "gfx90a", "gfx942", "gfx950"),
        *("gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201"),
    ),
}
"""What can be asked for, by platform: what the toolchains that ship with kabuild compile for.

A toolchain of a workspace's own may take fewer, and says so by itself.
"""


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
        known = ARCHITECTURES.get(name)
        if (colon and not arch) or (arch and known and arch not in known):
            there = f"there are: {', '.join(known)}" if known else f"--platform={name}"
            raise UsageError(
                Reason.UNKNOWN_PLATFORM,
                f"'{text}' names no architecture of platform {name}",
                hint="\n".join(filter(None, (_near(arch, known or ()), there))),
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


def _near(arch: str, known: Iterable[str]) -> str:
    """A hint for a mistyped architecture. One of another generation is none that was meant."""
    return suggest(arch, (name for name in known if _generation(name) == _generation(arch)))


def _generation(arch: str) -> str:
    """The first digit of an architecture: ``9`` of ``sm_90a``; empty without any."""
    return next(filter(str.isdecimal, arch), "")


def _meant(name: str) -> str:
    """A hint for something that is no platform but perhaps the architecture of one."""
    for platform, known in ARCHITECTURES.items():
        if name in known:
            return f"did you mean '{platform}:{name}'?"
    return suggest(name, PLATFORMS)
