"""The facts about a platform that compiling ahead of time needs.

They are in the platform's directory: ``toolchains/platforms/NAME/tools/NAME_triton.py`` defines
``PLATFORM``, an ``AheadPlatform``. An action has the file of its own platform only, beside
``compile.py``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class AheadDevice:
    """A GPU that need not be there: what a module or Triton may ask about it.

    Attributes:
        arch: its architecture, as the platform calls it.
        capability: as PyTorch counts.
        backend: Triton's, which compiles for it, and ``target`` the backend's own name for the
            architecture.
        wave: threads of a warp or wave.
        shared_bytes: the most shared memory of a block.
        processors: how many multiprocessors it has.
        torch_device: the type of such devices in PyTorch, whose module ``torch.<type>`` answers.
        versions: attributes of ``torch.version`` in a PyTorch for it that another one lacks.
    """

    arch: str
    capability: tuple[int, int]
    backend: str
    target: int | str
    wave: int
    shared_bytes: int
    processors: int
    torch_device: str
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class AheadPlatform:
    """A platform that Triton compiles for.

    Attributes:
        architectures: those that it compiles for.
        device: a device of one of them.
        resources: the resources of a compiled kernel on an architecture: the same figures as for a
            HIP kernel.
        handed_on: the suffixes of the files that a runner's Triton needs of a compiled kernel;
            empty where its cache has other names for them if Triton is installed elsewhere.
    """

    architectures: tuple[str, ...]
    device: Callable[[str], AheadDevice]
    resources: Callable[[Any, str], dict[str, Any]]
    handed_on: tuple[str, ...] = ()


def ahead_platform(name: str) -> AheadPlatform:
    """What the directory of platform ``name`` says. Raises ImportError where it says nothing."""
    found: AheadPlatform = importlib.import_module(f"{name}_triton").PLATFORM
    return found
