"""Debian packages, from the mirrors that this machine's apt uses."""

from __future__ import annotations

import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from kabuild.base.errors import Reason, ToolchainError
from kabuild.toolchain.fetch.apt_sources import Suite
from kabuild.toolchain.fetch.http import FAILURES, Http, shown, why
from kabuild.toolchain.lock import LockedFile
from kabuild.toolchain.machine import architecture

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_LISTS = {"Packages.xz": lzma.decompress, "Packages.gz": gzip.decompress}


@dataclass
class DebSource:
    """The suites of some mirrors. Their package lists are read once, and only to write the lock."""

    suites: tuple[Suite, ...]
    http: Http = field(default_factory=Http)
    _lists: dict[str, str] = field(default_factory=dict)

    def find(self, requirement: str, machine: str) -> LockedFile:
        """The package of exactly that version for a machine; as ``Source.find``."""
        name, _, version = requirement.partition("=")
        arch = architecture(machine)
        problems: list[str] = []
        versions: set[str] = set()
        for suite in self.suites:
            for component in suite.components:
                try:
                    text = self._packages(suite, component, _ARCHITECTURES.get(arch, arch))
                except (*FAILURES, ValueError, lzma.LZMAError, zlib.error) as error:
                    problems.append(f"{shown(suite.uri)} {suite.name}: {why(error)}")
                    continue
                for fields in _stanzas(text, name):
                    if fields["version"] == version:
                        return LockedFile(
                            fields["filename"], requirement, fields["sha256"], int(fields["size"])
                        )
                    versions.add(fields["version"])
        known = f"available: {', '.join(sorted(versions))}" if versions else ""
        raise ToolchainError(
            Reason.FETCH_FAILED,
            f"no mirror has {name} {version} for {machine}",
            hint="\n".join(filter(None, [known, *dict.fromkeys(problems)])),
        )

    def urls(self, file: LockedFile) -> Iterator[str]:
        """The file on every mirror."""
        for uri in dict.fromkeys(suite.uri for suite in self.suites):
            yield f"{uri}/{file.name}"

    def _packages(self, suite: Suite, component: str, arch: str) -> str:
        """The list of a component's packages."""
        base = f"{suite.uri}/dists/{suite.name}/{component}/binary-{arch}"
        if base not in self._lists:
            first, *others = _LISTS
            try:
                self._lists[base] = self._read(f"{base}/{first}", first)
            except FAILURES:
                self._lists[base] = self._read(f"{base}/{others[0]}", others[0])
        return self._lists[base]

    def _read(self, url: str, name: str) -> str:
        with self.http.open(url) as response:
            return _LISTS[name](response.read()).decode()


def _stanzas(text: str, package: str) -> Iterator[dict[str, str]]:
    """The fields of each stanza about a package, by lower-case name."""
    for match in re.finditer(rf"^Package: {re.escape(package)}\n", text, re.MULTILINE):
        start = text.rfind("\n\n", 0, match.start()) + 1
        end = text.find("\n\n", match.end())
        stanza = text[start : end if end >= 0 else len(text)]
        lines = [line.partition(":") for line in stanza.splitlines() if line[:1].strip()]
        fields = {name.lower(): value.strip() for name, _, value in lines}
        if {"version", "filename", "sha256", "size"} <= fields.keys():
            yield fields
