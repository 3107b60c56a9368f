"""Installed Python distributions, found by their ``.dist-info`` directories.

``importlib.metadata`` does the same, but its import alone takes longer than this.
"""

from __future__ import annotations

import os
import re
import site
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.bounded_json import bounded_json

_SUFFIX = ".dist-info"
_REQUIRED = re.compile(r"^Requires-Dist:\s*([A-Za-z0-9][A-Za-z0-9._-]*)([^\n]*)", re.MULTILINE)
_EXTRA = re.compile(r";.*\bextra\s*==")


@dataclass(frozen=True)
class InstalledDistribution:
    """One installed distribution.

    Attributes:
        name: normalised, as in ``typing-extensions``.
        info: its ``.dist-info`` directory.
    """

    name: str
    version: str
    info: Path

    @property
    def site(self) -> Path:
        """The directory that it is installed in."""
        return self.info.parent

    @property
    def record(self) -> Path:
        """The list of its files with their hashes; missing after some kinds of installation."""
        return self.info / "RECORD"

    @property
    def is_editable(self) -> bool:
        """Whether its code is elsewhere, in a directory that no RECORD lists."""
        try:
            told = bounded_json((self.info / "direct_url.json").read_bytes())
            return bool(told["dir_info"]["editable"])
        except (OSError, ValueError, LookupError, TypeError):
            return False

    def requirements(self) -> tuple[str, ...]:
        """The names that it requires, on any platform; without those of extras."""
        headers = (self.info / "METADATA").read_text(encoding="utf-8").partition("\n\n")[0]
        found = {
            normalise(name) for name, rest in _REQUIRED.findall(headers) if not _EXTRA.search(rest)
        }
        return tuple(sorted(found))


def normalise(name: str) -> str:
    """The one spelling of a distribution's name: lower case, single dashes."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(path: Sequence[str]) -> Mapping[str, InstalledDistribution]:
    """The distributions in the directories of an import path; earlier ones take precedence."""
    found: dict[str, InstalledDistribution] = {}
    for directory in path:
        for info in sorted(Path(directory).glob(f"*{_SUFFIX}")):
            name, _, version = info.name.removesuffix(_SUFFIX).partition("-")
            distribution = InstalledDistribution(normalise(name), version, info)
            found.setdefault(distribution.name, distribution)
    return found


def import_path() -> tuple[str, ...]:
    """The directories in which this Python finds packages inside a sandbox, too.

    There it has neither PYTHONPATH nor the user's own directory, nor that of the command. What is
    found only by these must not speak for the packages that an action really imports.
    """
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    ours = {os.path.abspath(name) for name in (*given, "", site.USER_SITE or "")}  # noqa: PTH100
    prefixes = tuple(f"{prefix.rstrip(os.sep)}{os.sep}" for prefix in (sys.prefix, sys.base_prefix))
    whole = ((name, os.path.abspath(name)) for name in sys.path)  # noqa: PTH100
    return tuple(name for name, full in whole if full not in ours or full.startswith(prefixes))


def closure(
    names: Sequence[str], known: Mapping[str, InstalledDistribution]
) -> tuple[InstalledDistribution, ...]:
    """The distributions ``names`` with all their installed requirements, sorted.

    Requirements for other platforms are not installed here, so they need no evaluation. Raises
    ``KeyError`` with a missing name of ``names``.
    """
    found = {normalise(name): known[normalise(name)] for name in names}
    queue = list(found.values())
    while queue:
        for name in queue.pop().requirements():
            if name in known and name not in found:
                found[name] = known[name]
                queue.append(known[name])
    return tuple(found[name] for name in sorted(found))
