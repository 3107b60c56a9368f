"""Names of tasks: what a benchmark calls them, as packages, and each once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from kabuild.model.label import names_package

_FOREIGN = re.compile(r"[^A-Za-z0-9_.+=-]")
_LONGEST_PART = 100


def distinct(names: Mapping[str, str]) -> dict[str, str]:
    """A valid name for each task, by the path that stands for it.

    A name that is valid stays, at its first task. Otherwise characters are replaced; where that is
    another task's name, a digest of the path follows.
    """
    taken: dict[str, str] = {}
    for path, name in names.items():
        if names_package(name) and name:
            taken.setdefault(name, path)
    found = {path: name for name, path in taken.items()}
    for path, name in names.items():
        if path not in found:
            valid = _valid(name)
            known = valid in taken or not names_package(valid)
            found[path] = _numbered(valid, path, taken) if known else valid
            taken[found[path]] = path
    return found


def _valid(name: str) -> str:
    parts = [_FOREIGN.sub("_", part)[:_LONGEST_PART] for part in name.split("/")]
    return "/".join(part if names_package(part) and part else f"_{part}" for part in parts)


def _numbered(name: str, path: str, taken: Mapping[str, str]) -> str:
    """The name with as much of the digest of ``path`` as makes it a new one."""
    digest = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()
    short = name if names_package(f"{name}-{digest}") else "task"
    return next(text for end in range(8, 65) if (text := f"{short}-{digest[:end]}") not in taken)
