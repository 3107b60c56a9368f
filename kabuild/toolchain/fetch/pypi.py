"""Wheels, from the indexes of the user's pip."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass, field

from kabuild.base.errors import DriftError, Reason, ToolchainError
from kabuild.toolchain.distributions import normalise
from kabuild.toolchain.fetch.download import measure
from kabuild.toolchain.fetch.http import FAILURES, Http, shown, why
from kabuild.toolchain.fetch.pip_settings import PipSettings
from kabuild.toolchain.fetch.simple_index import IndexFile, project_files
from kabuild.toolchain.fetch.wheel_name import WheelName
from kabuild.toolchain.lock import LockedFile

_NOT_FOUND = 404
_NETWORK = "check the network, and pip config list"


@dataclass
class PypiSource:
    """The simple indexes of a pip configuration. Each project is requested once."""

    settings: PipSettings
    _pages: dict[str, list[IndexFile]] = field(default_factory=dict)
    _silent: dict[str, list[str]] = field(default_factory=dict)
    """By project, the indexes that failed, and why."""

    def find(self, requirement: str, machine: str) -> LockedFile:
        """The wheel of exactly that version for a machine; as ``Source.find``."""
        name, _, version = requirement.partition("==")
        files = [file for file in self._files(name) if not file.yanked]
        wheels = [(file, WheelName.parse(file.name)) for file in files]
        known = [(file, wheel) for file, wheel in wheels if wheel and wheel.name == normalise(name)]
        right = [(file, wheel) for file, wheel in known if wheel.is_version(version)]
        if not right:
            versions = sorted({wheel.version for _, wheel in known})[-5:]
            newest = ", ".join(map(str, versions))
            raise _failure(
                f"no wheel of {name} {version}",
                *([f"the newest versions are: {newest}"] if newest else []),
                *self._not_asked(name),
            )
        fitting = [file for file, wheel in right if wheel.fits(machine)]
        if not fitting:
            raise _failure(
                f"no wheel of {requirement} is for {machine}",
                "it has: " + ", ".join(sorted(file.name for file, _ in right)),
                *self._not_asked(name),
            )
        best = min(fitting, key=lambda file: file.name)
        sha256, size = best.sha256, best.size
        if not sha256 or size is None:
            try:
                sha256, size = measure(self._http, best.url, sha256)
            except FAILURES as error:
                raise _failure(f"{best.name} cannot be downloaded: {why(error)}") from error
        return LockedFile(best.name, requirement, sha256, size)

    def urls(self, file: LockedFile) -> Iterator[str]:
        """The URLs of the wheel in all indexes, except those with another digest.

        Raises DriftError if all of them have another digest.
        """
        files = self._files(file.pin.partition("==")[0])
        named = [known for known in files if known.name == file.name]
        right = [known.url for known in named if known.sha256 in {"", file.sha256}]
        if named and not right:
            others = sorted({known.sha256 for known in named})
            raise DriftError(
                Reason.TOOLCHAIN_DRIFT,
                f"digest mismatch for {file.base}",
                hint=f"specified: sha256:{file.sha256}\n"
                f"indexes:   sha256:{', '.join(others)}\nnothing was fetched",
            )
        yield from right

    @property
    def http(self) -> Http:
        """How to download from ``urls``."""
        return self._http

    @property
    def _http(self) -> Http:
        return Http(self.settings.certificates)

    def _files(self, name: str) -> list[IndexFile]:
        """The files of a project in all indexes, in the order of the indexes."""
        project = normalise(name)
        if project not in self._pages:
            found: list[IndexFile] = []
            silent: list[str] = []
            for index in self.settings.indexes:
                try:
                    found += project_files(self._http, index, project)
                except (*FAILURES, ValueError) as error:
                    if not isinstance(error, urllib.error.HTTPError) or error.code != _NOT_FOUND:
                        silent.append(f"{shown(index)}: {why(error)}")
            if len(silent) == len(self.settings.indexes):
                raise _failure(f"no package index could be reached for {name}", *silent, _NETWORK)
            self._pages[project] = found
            self._silent[project] = silent
        return self._pages[project]

    def _not_asked(self, name: str) -> list[str]:
        """The lines of a hint: failed indexes that may have the missing file."""
        silent = self._silent[normalise(name)]
        return ["could not be reached: " + one for one in silent] + [_NETWORK] * bool(silent)


def _failure(message: str, *hints: str) -> ToolchainError:
    return ToolchainError(Reason.FETCH_FAILED, message, hint="\n".join(hints))
