"""Where an action runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CPU = "cpu"
"""The platform that every machine is. All others are declared in ``toolchains/platforms``."""


@dataclass(frozen=True)
class Platform:
    """``cpu`` or the name of a declared platform, with what can change a result unhashed.

    Properties (architecture, device model, driver, clock policy, memory limit) are sorted
    and in every key, because a verdict from one device says nothing about another.
    """

    name: str
    properties: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", tuple(sorted(self.properties)))

    def get(self, key: str, default: str = "") -> str:
        """The value of one property."""
        return dict(self.properties).get(key, default)

    def __str__(self) -> str:
        arch = self.get("arch")
        return f"{self.name}:{arch}" if arch else self.name


@dataclass(frozen=True)
class Installation:
    """A compiler that may be installed on a machine, and that a toolchain may adopt.

    Attributes:
        program: the program to look for on the search path.
        use: what it is good for.
        requires: files below its root; ``a|b`` is either of two. A wrapper script has none.
    """

    program: str
    use: str
    requires: tuple[str, ...]


@dataclass(frozen=True)
class PlatformSpec:
    """What the directory of a platform declares. ``cpu`` declares nothing.

    Attributes:
        name: the directory's.
        doc: one sentence for people.
        device: what people call one of its devices.
        example: an architecture, for messages.
        architectures: what ``--platform=NAME:ARCH`` may name, each with the architecture that
            its devices report; the two differ for code that uses features of one device.
        visible: the variables by which users hide devices, the first that is set counts.
        untried: parts that were never tested on hardware; empty if all were.
        pytorch: a pattern of the versions of PyTorch that compute on its devices; empty for any.
        pytorch_build: what such a build is called.
        installations: compilers that can be adopted for it.
    """

    name: str
    doc: str = ""
    device: str = ""
    example: str = ""
    architectures: Mapping[str, str] = field(default_factory=dict, hash=False)
    visible: tuple[str, ...] = ()
    untried: str = ""
    pytorch: str = ""
    pytorch_build: str = ""
    installations: tuple[Installation, ...] = ()


CPU_SPEC = PlatformSpec(CPU)
