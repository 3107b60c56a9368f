"""The pinned parts of a tree, and their places after following links."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path


def with_targets(home: Path, parts: Iterable[str]) -> list[str]:
    """The parts, and the targets of links among them within the tree.

    A link alone would pin only a name: its target could change unnoticed.
    """
    found = dict.fromkeys(parts)
    found |= dict.fromkeys(place for part in parts if (place := place_of(home, part)) is not None)
    return list(found)


def is_counted(home: Path, path: str, parts: Sequence[str]) -> bool:
    """Whether the target of a path is in the tree, and in its parts if it has any.

    Files outside the tree are not pinned, and no action sees them.
    """
    place = place_of(home, path)
    if place is None:
        return False
    counted = with_targets(home, parts) or [""]
    return any(is_in(found, part) for found in (path, place) for part in counted)


def place_of(home: Path, path: str) -> str | None:
    """A path in the tree after following links, "" for its root.

    None if that is outside or missing.
    """
    root, real = os.path.realpath(home), os.path.realpath(home / path)
    if not is_there(home, path) or os.path.commonpath((root, real)) != root:
        return None
    return "" if real == root else os.path.relpath(real, root)


def is_there(home: Path, path: str) -> bool:
    """Whether a path exists, as far as this user may see."""
    return os.path.exists(home / path)  # noqa: PTH110 - pathlib raises where access is denied


def is_in(path: str, part: str) -> bool:
    """Whether a path is a part of a tree or lies in it; "" contains everything."""
    return not part or path == part or path.startswith(f"{part}/")
