"""What a node offers: its platforms, its devices and its toolchains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.base.bounded_json import read_json
from kabuild.base.canonical import canonical_json
from kabuild.base.version import __version__
from kabuild.model.action import Action, Toolchain
from kabuild.model.device import Devices
from kabuild.model.platform import CPU, Platform

_SCHEMA = 1


@dataclass(frozen=True)
class Offer:
    """What one node can run.

    Attributes:
        platforms: by name, with this machine's properties.
        devices: of the platform that is not ``cpu``, if there is one.
        toolchains: by the hash of their fingerprints.
        jobs: CPU slots.
    """

    platforms: Mapping[str, Platform] = field(hash=False)
    devices: Devices
    toolchains: Mapping[str, Toolchain] = field(hash=False)
    jobs: int

    def refusal(self, action: Action) -> str:
        """Why the platform of ``action`` is not this node's; empty if it is.

        What only compiles for devices needs none of them.
        """
        wanted, needs = action.platform, action.resources
        if wanted.name != CPU and not needs.lease and not needs.timed:
            return ""
        own = self.platforms.get(wanted.name)
        if own is None:
            return f"the action is for platform {wanted}, this node is {self._shown}"
        differing = [
            f"{name} is '{own.get(name)}', the action is for '{value}'"
            for name, value in wanted.properties
            if own.get(name) != value
        ]
        return f"{wanted.name} of this node differs: {'; '.join(differing)}" if differing else ""

    @property
    def _shown(self) -> str:
        return " and ".join(map(str, self.platforms.values()))

    def to_json(self) -> bytes:
        """The offer for ``kabuild fleet status``."""
        return canonical_json(
            {
                "schema": _SCHEMA,
                "kabuild": __version__,
                "jobs": self.jobs,
                "platforms": {name: dict(p.properties) for name, p in self.platforms.items()},
                "devices": [device.name for device in self.devices.found],
                "toolchains": {
                    tool.name: tool.fingerprint.decode() for tool in self.toolchains.values()
                },
            }
        )


@dataclass(frozen=True)
class Offered:
    """An offer as another machine reads it.

    ``toolchains`` are fingerprints by name.
    """

    version: str
    jobs: int
    platforms: Mapping[str, Platform] = field(hash=False)
    devices: tuple[str, ...]
    toolchains: Mapping[str, str] = field(hash=False)

    @classmethod
    def from_json(cls, data: bytes) -> Offered:
        """Read ``Offer.to_json``. Raises ``ValueError``."""
        try:
            said: Any = read_json(data)
            if said["schema"] != _SCHEMA:
                raise ValueError(f"its schema is {said['schema']!r}, expected {_SCHEMA}")
            return cls(
                version=str(said["kabuild"]),
                jobs=int(said["jobs"]),
                platforms={
                    str(name): Platform(
                        str(name), tuple((str(k), str(v)) for k, v in properties.items())
                    )
                    for name, properties in said["platforms"].items()
                },
                devices=tuple(map(str, said["devices"])),
                toolchains={str(k): str(v) for k, v in said["toolchains"].items()},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
