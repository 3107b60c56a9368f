"""Whether a directory can serve as a toolchain: it has all required files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from kabuild.base.errors import Reason, ToolchainError
from kabuild.toolchain.declaration import Declaration
from kabuild.toolchain.parts import is_counted, is_in, is_there, place_of

_SCRIPT = 4096
"""The largest script that is read, in bytes: wrappers are short."""
_PATH = re.compile(rb"/[^\s\"'$;|&<>(){}]+")
_STEPS = 4
"""The most wrappers that call each other."""


def lacking(home: Path, requires: Sequence[str], parts: Sequence[str] = ()) -> list[str]:
    """The paths of ``requires`` that are missing in ``home``, or in its pinned parts."""
    return [either for either in requires if not _has_one(home, either.split("|"), parts)]


def require_whole(
    declaration: Declaration, home: Path, parts: Sequence[str] = (), hint: str = ""
) -> None:
    """Raise ToolchainError(NO_TOOLCHAIN) if ``home`` cannot serve as a toolchain."""
    missing = lacking(home, declaration.requires, parts)
    if missing:
        raise ToolchainError(
            Reason.NO_TOOLCHAIN,
            not_whole(declaration, home, missing, parts),
            position=declaration.position,
            hint=hint,
        )


def not_whole(
    declaration: Declaration, home: Path, missing: Sequence[str], parts: Sequence[str] = ()
) -> str:
    """The problem with a directory that lacks something."""
    where = f"{', '.join(parts)} of {home}" if parts else str(home)
    absent = [either for either in missing if not _outside(home, either.split("|"), parts)]
    if absent:
        why = f"it lacks {', '.join(either.replace('|', ' or ') for either in absent)}"
    else:
        path = _outside(home, missing[0].split("|"), parts)[0]
        real = os.path.realpath(home / path)
        why = f"{path} leads out of it, to {real}: adopt its directory, or a copy (cp -rL)"
    return f"{where} cannot be {declaration.label.short}: {why}"


def installation(program: Path, requires: Sequence[str]) -> Path | None:
    """The directory to adopt for a program on the path; None if there is none.

    Follows links and wrapper scripts. It is the first directory on the way whose ``bin/`` has the
    program and that holds all of ``requires``.
    """
    for found in _followed(program, _STEPS):
        home = found.parent.parent
        if not lacking(home, requires):
            return home
    return None


def _has_one(home: Path, paths: Sequence[str], parts: Sequence[str]) -> bool:
    return any(is_counted(home, path, parts) for path in paths)


def _outside(home: Path, paths: Sequence[str], parts: Sequence[str]) -> list[str]:
    """The paths that exist only by links out of the tree."""
    named = [path for path in paths if not parts or any(is_in(path, part) for part in parts)]
    return [path for path in named if is_there(home, path) and place_of(home, path) is None]


def _followed(program: Path, steps: int) -> Iterator[Path]:
    """A program and the programs of the same name that it links to or calls, nearest first."""
    yield program
    real = Path(os.path.realpath(program))
    if real != program:
        yield real
    if steps:
        for called in _called(real):
            if called.name == program.name and called != real and os.access(called, os.R_OK):
                yield from _followed(called, steps - 1)


def _called(script: Path) -> list[Path]:
    """The absolute paths in a short script; none for other files."""
    try:
        with script.open("rb") as file:
            text = file.read(_SCRIPT + 1)
    except OSError:
        return []
    if not text.startswith(b"#!") or len(text) > _SCRIPT:
        return []
    lines = text.partition(b"\n")[2]
    return [Path(path.decode(errors="replace")) for path in _PATH.findall(lines)]
