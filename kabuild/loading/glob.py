"""Globs over the files of one package."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from kabuild.loading.roots import BUILD_FILE, WORKSPACE_FILE


def is_glob(path: str) -> bool:
    """Whether ``path`` is a pattern, not a plain path."""
    return "*" in path


def glob(directory: Path, pattern: str) -> list[str]:
    """Files below ``directory`` that match, as sorted relative paths.

    ``*`` matches anything within one name, ``**`` any number of directories, also none. Wildcards
    do not match names that start with a dot, nor files of packages inside this one.
    """
    return sorted(set(_walk(str(directory), "", pattern.split("/"))))


def _walk(directory: str, prefix: str, parts: list[str]) -> Iterator[str]:
    head, *rest = parts
    if head == "**" and rest:
        yield from _walk(directory, prefix, rest)
    with os.scandir(directory) as entries:
        found = [entry for entry in entries if _matches(head, entry.name)]
    for entry in found:
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            if _is_package(entry.path):
                continue
            if head == "**":
                yield from _walk(entry.path, f"{path}/", parts)
            elif rest:
                yield from _walk(entry.path, f"{path}/", rest)
        elif not rest and entry.is_file():
            yield path


def _matches(pattern: str, name: str) -> bool:
    if "*" not in pattern:
        return name == pattern
    if name.startswith(".") and not pattern.startswith("."):
        return False
    text = ".*".join(re.escape(part) for part in re.split(r"\*+", pattern))
    return re.fullmatch(text, name) is not None


def _is_package(directory: str) -> bool:
    return any((Path(directory) / name).is_file() for name in (BUILD_FILE, WORKSPACE_FILE))
