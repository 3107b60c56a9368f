"""Whether a directory can stand for a toolchain: it holds what the declaration requires."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from kabuild.base.errors import Reason, ToolchainError
from kabuild.toolchain.declaration import Declaration
from kabuild.toolchain.parts import is_counted

_SCRIPT = 4096
"""Bytes of a script that are looked at: one that only calls another program is short."""
_PATH = re.compile(rb"/[^\s\"'$;|&<>(){}]+")
_STEPS = 4
"""Wrappers that lead to wrappers."""


def lacking(home: Path, requires: Sequence[str], parts: Sequence[str] = ()) -> list[str]:
    """Which of ``requires`` is not in ``home``, or not in those of its parts that count."""
    return [either for either in requires if not _has_one(home, either.split("|"), parts)]


def require_whole(
    declaration: Declaration, home: Path, parts: Sequence[str] = (), hint: str = ""
) -> None:
    """Raise ToolchainError(NO_TOOLCHAIN) where ``home`` cannot stand for a toolchain."""
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
    """What is wrong with a directory that lacks something."""
    where = f"{', '.join(parts)} of {home}" if parts else str(home)
    named = ", ".join(either.replace("|", " or ") for either in missing)
    return f"{where} cannot be {declaration.label.short}: there is no {named}"


def installation(program: Path, requires: Sequence[str]) -> Path | None:
    """The directory to adopt that a program on the path belongs to; None where there is none.

    Links are followed, and scripts that do nothing but call the program elsewhere. It is the
    first directory on the way whose ``bin/`` has the program and that holds all of ``requires``.
    """
    for found in _followed(program, _STEPS):
        home = found.parent.parent
        if not lacking(home, requires):
            return home
    return None


def _has_one(home: Path, paths: Sequence[str], parts: Sequence[str]) -> bool:
    return any((home / path).exists() and is_counted(home, path, parts) for path in paths)


def _followed(program: Path, steps: int) -> Iterator[Path]:
    """A program, and the programs of the same name that it is or calls, nearest first."""
    yield program
    real = program.resolve()
    if real != program:
        yield real
    if steps:
        for called in _called(real):
            if called.name == program.name and called.is_file() and called != real:
                yield from _followed(called, steps - 1)


def _called(script: Path) -> list[Path]:
    """The absolute paths in a short script; none of anything else."""
    try:
        with script.open("rb") as file:
            text = file.read(_SCRIPT + 1)
    except OSError:
        return []
    if not text.startswith(b"#!") or len(text) > _SCRIPT:
        return []
    lines = text.partition(b"\n")[2]
    return [Path(path.decode(errors="replace")) for path in _PATH.findall(lines)]
