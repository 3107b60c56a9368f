"""Where an action runs."""

from __future__ import annotations

from dataclasses import dataclass

PLATFORMS = ("cpu", "cuda", "rocm")


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

    def get(self, key: str, default: str = "") -> str:
        """The value of one property."""
        return dict(self.properties).get(key, default)

    def with_properties(self, **extra: str) -> Platform:
        """This platform with properties added or replaced."""
        return Platform(self.name, tuple({**dict(self.properties), **extra}.items()))

    def __str__(self) -> str:
        arch = self.get("arch")
        return f"{self.name}:{arch}" if arch else self.name
