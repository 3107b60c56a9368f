"""The progress of a fetch."""

from __future__ import annotations

from typing import Protocol


class FetchProgress(Protocol):
    """A listener for downloads by file name; called from several threads."""

    def started(self, name: str, size: int, done: int) -> None:
        """A download starts; ``done`` of ``size`` bytes are left from an earlier attempt."""

    def advanced(self, name: str, size: int) -> None:
        """``size`` more bytes have arrived."""

    def unpacking(self, toolchain: str) -> None:
        """All files are downloaded and verified."""

    def finished(self, toolchain: str, seconds: float) -> None:
        """The toolchain can be used."""

    def stop(self) -> None:
        """The fetch has ended, successfully or not."""


class Silent:
    """Ignores everything."""

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
