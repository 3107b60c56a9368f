"""Where an action runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PLATFORMS = "toolchains/platforms"
"""Where the directories of platforms are, in a workspace and in kabuild."""

CPU = "cpu"
"""The platform that every machine has. All others are declared in ``toolchains/platforms``."""


@dataclass(frozen=True)
class Platform:
    """``cpu`` or a declared platform, with the machine's properties that can change results.

    Properties (architecture, device model, driver, clock policy, memory limit) are sorted, and part
    of every key: a verdict from one device says nothing about another.
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
    """A compiler that may be installed on a machine, for a toolchain to adopt.

    Attributes:
        program: the program to look for on the search path.
        use: its purpose, for people.
        requires: files below its root; ``a|b`` is either of two. A wrapper script has none.
    """

    program: str
    use: str
    requires: tuple[str, ...]


@dataclass(frozen=True)
class Package:
    """A Python package that is of use on a platform.

    Attributes:
        name: the distribution's name.
        use: what it is good for.
    """

    name: str
    use: str


@dataclass(frozen=True)
class PlatformSpec:
    """The declaration in a platform's directory. ``cpu`` has none.

    Attributes:
        name: of the directory.
        root: ``workspace`` or ``builtin``: what the directory's path is relative to.
        doc: one sentence for people.
        device: what users call one of its devices.
        example: an architecture, for messages.
        architectures: what ``--platform=NAME:ARCH`` may name, each with the architecture that its
            devices report; they differ for code that uses device-specific features.
        visible: the variables by which users hide devices; the first that is set counts.
        untried: what was never tested on hardware; empty if nothing.
        pytorch: a pattern of the PyTorch versions that support its devices; empty for any.
        pytorch_build: what such a build is called.
        installations: compilers that can be adopted for it.
        packages: Python packages that it can use.
        groups: whose members may use its devices.
        resource: its devices, as Kubernetes names them; empty if it does not.
        profiler: the toolchain that reads its devices' counters, a label; empty if there is none.
        tf32: whether PyTorch's convolutions and Triton's products compute f32 in TF32 by default.
        ahead: whether Triton's kernels can be compiled for it without a device, and handed on.
    """

    name: str
    root: str = "builtin"
    doc: str = ""
    device: str = ""
    example: str = ""
    architectures: Mapping[str, str] = field(default_factory=dict, hash=False)
    visible: tuple[str, ...] = ()
    untried: str = ""
    pytorch: str = ""
    pytorch_build: str = ""
    installations: tuple[Installation, ...] = ()
    packages: tuple[Package, ...] = ()
    groups: tuple[str, ...] = ()
    resource: str = ""
    profiler: str = ""
    tf32: bool = False
    ahead: bool = False


CPU_SPEC = PlatformSpec(CPU)
