"""What a fetch tells while it goes on."""

from __future__ import annotations

from typing import Protocol


class FetchProgress(Protocol):
    """Hears of downloads by file name, from several threads."""

    def started(self, name: str, size: int, done: int) -> None:
        """``done`` of ``size`` bytes are there from an earlier attempt."""

    def advanced(self, name: str, size: int) -> None:
        """``size`` bytes more."""

    def unpacking(self, toolchain: str) -> None:
        """All files are there and are what was pinned."""

    def finished(self, toolchain: str, seconds: float) -> None:
        """The toolchain can be used."""

    def stop(self) -> None:
        """Nothing more comes, whether it worked or not."""


class Silent:
    """Says nothing."""

    def started(self, name: str, size: int, done: int) -> None:
        """Ignored."""

    def advanced(self, name: str, size: int) -> None:
        """Ignored."""

    def unpacking(self, toolchain: str) -> None:
        """Ignored."""

    def finished(self, toolchain: str, seconds: float) -> None:
        """Ignored."""

    def stop(self) -> None:
        """Ignored."""
