"""Passes a baseline's compiler cache from one action to another.

Both have it at the same path in their runners' sandboxes, since compilers record absolute paths.
Nothing here interprets the files; only the baseline's own runners see them.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MOST_BYTES = 64 << 20
"""A larger cache is not passed on, and each judging compiles for itself."""

FOLDERS = ("inductor", "triton")
TURN = "turn.lock"
"""The file in Inductor's folder that a process locks while it measures variants."""

_EAGER, _COMPILED, _TUNING = "eager", "compiled", "tuning"
_CHOICES = (".best_config", ".kernel_perf")
_TABLES = "inductor/cache"
"""Where Inductor notes what it chose among variants, and the times by which it chose."""

_PART = re.compile(r"[\w+=.-]{1,200}", re.ASCII)
_UNFINISHED = (".lock", ".tmp")


def folder_of(cache: str, mode: str) -> str:
    """The part of a baseline's cache for one mode; empty without a cache.

    All compiled modes share one, as they compile and try the same kernels.
    """
    return _made(cache, _COMPILED if mode else _EAGER)


def tuning_folder(cache: str, name: str, after: str = "") -> str:
    """The cache of one tuning; empty without a cache. All share a lock: one measures at a time.

    It begins with the variants that the tuning in the folder ``after`` has compiled, and with
    nothing of what that has chosen.
    """
    folder = _made(cache, f"{_TUNING}-{name}")
    if folder:
        compiled = FOLDERS[1]
        if after and Path(after, compiled).is_dir():
            shutil.move(Path(after, compiled), Path(folder, compiled))
        turn = Path(folder, FOLDERS[0], TURN)
        common = Path(cache, TURN)
        common.touch()
        turn.parent.mkdir(exist_ok=True)
        turn.unlink(missing_ok=True)
        turn.hardlink_to(common)
    return folder


def take_choices(cache: str, tunings: Iterable[str]) -> None:
    """Let the compiled modes have what the compiler chose in these tunings, and nothing else.

    Of each kernel, tens of variants were compiled to choose one. Compiling again yields no others.
    Where two tunings chose for the same kernel, the first one counts.
    """
    there = Path(folder_of(cache, _COMPILED))
    for tuning in tunings:
        for path in _files(tuning):
            if path.is_symlink():
                continue
            place = there / path.relative_to(tuning)
            if path.suffix in _CHOICES and not place.exists():
                _write(place, path.read_bytes())
            elif Path(tuning, _TABLES) in path.parents and (merged := _merged(place, path)):
                _write(place, json.dumps(merged).encode())


def collected(cache: str) -> dict[str, str]:
    """The files of compiled modes by path, in base64; empty if they are too large."""
    found: dict[str, bytes] = {}
    for path in _files(folder_of(cache, _COMPILED)):
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


def forget_tunings(cache: str) -> None:
    """Remove the caches of all tunings."""
    for folder in Path(cache).glob(f"{_TUNING}-*") if cache else ():
        shutil.rmtree(folder, ignore_errors=True)


def _merged(first: Path, other: Path) -> dict[str, Any]:
    """The tables of two files as one; a file that holds no table counts for nothing."""
    return _both(_table(first), _table(other))


def _table(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _both(first: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    joined = {**other, **first}
    for name in first.keys() & other.keys():
        if isinstance(first[name], dict) and isinstance(other[name], dict):
            joined[name] = _both(first[name], other[name])
    return joined


def _write(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def _made(cache: str, name: str) -> str:
    if not cache:
        return ""
    folder = Path(cache, name)
    folder.mkdir(exist_ok=True)
    return str(folder)


def _files(folder: str) -> list[Path]:
    found = (file for name in FOLDERS for file in Path(folder, name).rglob("*"))
    return sorted(file for file in found if file.is_symlink() or file.is_file())


def _is_plain(place: str) -> bool:
    mode, *parts = place.split("/")
    names = all(_PART.fullmatch(part) and part.strip(".") for part in (mode, *parts))
    return names and len(parts) > 1 and parts[0] in FOLDERS
