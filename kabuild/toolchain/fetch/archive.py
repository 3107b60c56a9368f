"""Archives, each with its own URL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from kabuild.base.errors import DriftError, Reason, ToolchainError
from kabuild.toolchain.fetch.download import measure
from kabuild.toolchain.fetch.http import FAILURES, Http, shown, why
from kabuild.toolchain.lock import LockedFile


@dataclass(frozen=True)
class ArchiveSource:
    """One URL. ``sha256`` is the declared digest."""

    http: Http
    url: str
    sha256: str

    def find(self, requirement: str, machine: str) -> LockedFile:  # noqa: ARG002 - serves all
        """The archive, read in full and compared with its declaration."""
        name = unquote(urlsplit(requirement).path.rpartition("/")[2])
        try:
            found, size = measure(self.http, requirement, "")
        except FAILURES as error:
            raise ToolchainError(
                Reason.FETCH_FAILED,
                f"{name} cannot be downloaded",
                hint=f"{shown(requirement)}: {why(error)}",
            ) from error
        if found != self.sha256:
            raise DriftError(
                Reason.TOOLCHAIN_DRIFT,
                f"digest mismatch for {name}",
                hint=f"specified: sha256:{self.sha256}\ngot:       sha256:{found}",
            )
        return LockedFile(name, "", found, size)

    def urls(self, file: LockedFile) -> Iterator[str]:  # noqa: ARG002 - there is but one
        """The URL of the declaration, which may change as long as the file does not."""
        yield self.url
