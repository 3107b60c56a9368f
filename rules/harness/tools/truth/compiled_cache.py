"""Passes a baseline's compiler cache from one action to another.

Both have it at the same path in their runners' sandboxes, since compilers record absolute paths.
Nothing here interprets the files; only the baseline's own runners see them.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

MOST_BYTES = 64 << 20
"""A larger cache is not passed on, and each judging compiles for itself."""

FOLDERS = ("inductor", "triton")
_EAGER, _COMPILED = "eager", "compiled"
_CHOICES = (".best_config", ".kernel_perf")
_TABLES = "inductor/cache"
"""Where Inductor notes what it chose among variants, and the times by which it chose."""

_PART = re.compile(r"[\w+=.-]{1,200}", re.ASCII)
_UNFINISHED = (".lock", ".tmp")


def folder_of(cache: str, mode: str) -> str:
    """The part of a baseline's cache for one mode; empty without a cache.

    All compiled modes share one, as they compile and try the same kernels.
    """
    if not cache:
        return ""
    folder = Path(cache) / (_COMPILED if mode else _EAGER)
    folder.mkdir(exist_ok=True)
    return str(folder)


def keep_choices(cache: str) -> None:
    """Remove what was compiled, but not what the compiler chose.

    Of each kernel, tens of variants were compiled to choose one. Compiling again yields no others.
    """
    tables = Path(folder_of(cache, _COMPILED)) / _TABLES
    for path in _files(cache):
        if path.suffix not in _CHOICES and tables not in path.parents:
            path.unlink()


def collected(cache: str) -> dict[str, str]:
    """The files of compiled modes by path, in base64; empty if they are too large."""
    found: dict[str, bytes] = {}
    for path in _files(cache):
        kept = not path.is_symlink() and path.suffix not in _UNFINISHED
        if kept and _is_plain(place := path.relative_to(cache).as_posix()):
            found[place] = path.read_bytes()
    if sum(map(len, found.values())) > MOST_BYTES:
        return {}
    return {place: base64.b64encode(content).decode() for place, content in found.items()}


def lay_out(file: Path, cache: str) -> None:
    """Write collected files to where runners look for them. Raises ValueError for other files."""
    value = json.loads(file.read_bytes())
    if not isinstance(value, dict):
        raise ValueError(f"{file.name} is not a table of files")
    for place, content in value.items():
        if not _is_plain(place) or not isinstance(content, str):
            raise ValueError(f"{file.name} has {place!r}, which is not in a compiler's cache")
        path = Path(cache) / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(content, validate=True))


def _files(cache: str) -> list[Path]:
    root = Path(folder_of(cache, _COMPILED))
    found = (file for name in FOLDERS for file in (root / name).rglob("*"))
    return sorted(file for file in found if file.is_symlink() or file.is_file())


def _is_plain(place: str) -> bool:
    mode, *parts = place.split("/")
    names = all(_PART.fullmatch(part) and part.strip(".") for part in (mode, *parts))
    return names and len(parts) > 1 and parts[0] in FOLDERS
