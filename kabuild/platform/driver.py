"""What is asked of each platform's driver."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol

from kabuild.model.device import Device, Devices, Exposure

CHOSEN = "KABUILD_DEVICE"
"""The variable by which a judge learns which device its action was given.

It holds what the vendor's own variable takes: a name where there is one, because numbers mean
something else in a sandbox that shows one device of several.
"""


@dataclass(frozen=True)
class Remark:
    """One more line about a platform in ``kabuild doctor``.

    Attributes:
        name: what the line is about, such as a library.
        found: what there is of it.
        good: True if it works, False if it is broken, None if it is absent.
    """

    name: str
    found: str
    good: bool | None = None


class Driver(Protocol):
    """The devices of one platform. Methods may be called by several threads."""

    def probe(self) -> Devices:
        """All devices with what they are now; never raises, but says why there are none."""
        ...

    def lost(self, device: Device) -> str:
        """Why the device no longer answers; empty if it answers."""
        ...

    def users(self, device: Device) -> tuple[int, ...]:
        """Processes that compute on it, as far as this one may know."""
        ...

    def exposure(self, device: Device) -> Exposure:
        """What a sandbox has to show so that an action can use it."""
        ...

    def remarks(self) -> tuple[Remark, ...]:
        """What ``kabuild doctor`` says besides; no build asks."""
        ...


def missing(nodes: tuple[str, ...]) -> str:
    """The first missing device file; empty if none is missing."""
    return next((f"{node} is missing" for node in nodes if not os.path.lexists(node)), "")


def unreadable(nodes: tuple[str, ...]) -> str:
    """The first device file that this process cannot use, and why; empty if it can use all."""
    closed = (node for node in nodes if not os.access(node, os.R_OK | os.W_OK))
    return missing(nodes) or next((f"this user may not open {node}" for node in closed), "")


def existing(*paths: str) -> tuple[str, ...]:
    """Those paths that there are."""
    return tuple(path for path in paths if os.path.exists(path))  # noqa: PTH110 - hot enough
