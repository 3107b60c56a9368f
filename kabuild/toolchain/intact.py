"""Whether installed distributions still have the files that their RECORDs list.

A fingerprint has a distribution's RECORD, which is what was installed. So before anything runs
with a file that somebody edited since, this finds it: the result would be kept for the wheel.
"""

from __future__ import annotations

import base64
import csv
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kabuild.base.bounded_json import bounded_json
from kabuild.base.errors import DriftError, Reason
from kabuild.model.action import Toolchain
from kabuild.model.digest import Digest
from kabuild.toolchain.distributions import InstalledDistribution, import_path, installed
from kabuild.toolchain.fingerprint import FileDigest, is_of_wheel
from kabuild.toolchain.tree_store import few

MADE = (".pyc",)
"""Endings of files that an installer makes itself."""

Intact = Callable[[Toolchain], None]
"""Raises DriftError for a toolchain whose files changed after they were installed."""


@dataclass
class InstalledFiles:
    """Looks at each toolchain once.

    A file is read only if its status is newer than that of its RECORD, which installers write last:
    programs cannot set that time, so an edited file looks new. A copy of an environment with edited
    files looks whole; only ``verification`` reads everything. A missing file is none: images leave
    out tests and headers, and what imports a module that is gone fails.

    Attributes:
        digest: of a file; a caller may remember it by status.
    """

    digest: FileDigest
    _seen: dict[bytes, DriftError | None] = field(default_factory=dict)
    _looking: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, toolchain: Toolchain) -> None:
        """Raise DriftError if files of a toolchain's distributions changed."""
        with self._looking:
            if toolchain.fingerprint not in self._seen:
                self._seen[toolchain.fingerprint] = self._problem(toolchain)
            problem = self._seen[toolchain.fingerprint]
        if problem:
            raise problem

    def _problem(self, toolchain: Toolchain) -> DriftError | None:
        known = installed(import_path())
        named = [known[name] for name in _names(toolchain.fingerprint) if name in known]
        changed = {item: [*self._differences(item)] for item in named}
        lines = [line for found in changed.values() for line in found]
        if not lines:
            return None
        pins = [f"{item.name}=={item.version}" for item, found in changed.items() if found]
        command = [sys.executable, "-m", "pip", "install", "--force-reinstall", "--no-deps", *pins]
        return DriftError(
            Reason.TOOLCHAIN_DRIFT,
            f"toolchain '{toolchain.name}' differs from what was installed in {sys.prefix}",
            hint="\n".join(
                (
                    *few(lines),
                    f"to get it again: {shlex.join(command)}",
                    "to judge with these changes, build a wheel of them and install that",
                )
            ),
        )

    def _differences(self, distribution: InstalledDistribution) -> Iterator[str]:
        since = distribution.record.stat().st_ctime_ns
        for name, wanted in recorded_files(distribution):
            path = Path(distribution.site, name)
            try:
                if path.stat().st_ctime_ns > since and _said(self.digest(path)) != wanted:
                    yield f"{name}: changed"
            except FileNotFoundError:
                continue
            except OSError as error:
                yield f"{name}: {error.strerror}"


def recorded_files(distribution: InstalledDistribution) -> Iterator[tuple[str, str]]:
    """The files of a distribution's wheel, each with its digest as a RECORD says it.

    Raises ``OSError``.
    """
    file = distribution.record.open(newline="", encoding="utf-8", errors="surrogateescape")
    with file as record:
        for name, digest, *_ in (row for row in csv.reader(record) if len(row) > 1):
            if digest.startswith("sha256=") and not name.endswith(MADE) and is_of_wheel(name):
                yield name, digest


def _said(digest: Digest) -> str:
    """A digest as a RECORD says it."""
    text = base64.urlsafe_b64encode(bytes.fromhex(digest.hash)).decode()
    return f"sha256={text.rstrip('=')}"


def _names(fingerprint: bytes) -> list[str]:
    """The distributions that a fingerprint names; none if it is not of distributions."""
    value = bounded_json(fingerprint)
    if not isinstance(value, dict):
        return []
    items = {"environment": value.get("distributions", ()), "distribution": (value,)}
    return [item["name"] for item in items.get(str(value.get("kind")), ())]
