"""The Debian mirrors of this machine, from apt's own lists."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

APT = Path("/etc/apt")
DIRECTORY = "KABUILD_APT_SOURCES"
"""Environment variable with a directory to read instead of ``/etc/apt``."""

_LINE = re.compile(r"deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+(.+)")


@dataclass(frozen=True)
class Suite:
    """One suite of a mirror: ``uri``/dists/``name``, with its components."""

    uri: str
    name: str
    components: tuple[str, ...]


DEFAULT = Suite("https://deb.debian.org/debian", "bookworm", ("main",))
"""The last suites to ask, so that machines without apt get the same packages."""


def apt_suites(env: Mapping[str, str] = os.environ) -> tuple[Suite, ...]:
    """The suites of ``sources.list`` and ``sources.list.d``, then Debian's own."""
    directory = Path(env.get(DIRECTORY) or APT)
    found: dict[Suite, None] = {}
    files = [directory / "sources.list"]
    if (directory / "sources.list.d").is_dir():
        files += sorted((directory / "sources.list.d").iterdir())
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        suites = _stanzas(text) if file.suffix == ".sources" else _lines(text)
        found.update(dict.fromkeys(suites))
    return tuple(found) if env.get(DIRECTORY) else (*found, DEFAULT)


def _lines(text: str) -> Iterator[Suite]:
    """``deb [options] URI SUITE COMPONENT...``."""
    for line in text.splitlines():
        if match := _LINE.fullmatch(line.partition("#")[0].strip()):
            yield Suite(match[1].rstrip("/"), match[2], tuple(match[3].split()))


def _stanzas(text: str) -> Iterator[Suite]:
    """The deb822 format: ``Types: deb`` with URIs, Suites and Components."""
    for stanza in re.split(r"\n\s*\n", text):
        fields: dict[str, list[str]] = {}
        for line in stanza.splitlines():
            name, colon, value = line.partition(":")
            if colon and not line.startswith((" ", "\t", "#")):
                fields[name.lower()] = value.split()
        if "deb" not in fields.get("types", ()) or fields.get("enabled") == ["no"]:
            continue
        for uri in fields.get("uris", ()):
            for suite in fields.get("suites", ()):
                yield Suite(uri.rstrip("/"), suite, tuple(fields.get("components", ())))
