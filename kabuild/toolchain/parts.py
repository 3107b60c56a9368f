"""Parts of a tree that count, and where they lie once links are followed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path


def with_targets(home: Path, parts: Iterable[str]) -> list[str]:
    """The parts, and what of the tree those lead to that are links, or lie behind one.

    A link alone would pin a name: its target could change unnoticed.
    """
    found = dict.fromkeys(parts)
    found |= dict.fromkeys(place for part in parts if (place := place_of(home, part)) is not None)
    return list(found)


def is_counted(home: Path, path: str, parts: Sequence[str]) -> bool:
    """Whether what a path leads to is in the tree, and counts there: in a tree with parts, of them.

    What lies outside of the tree is not pinned by it, and no action sees it.
    """
    place = place_of(home, path)
    if place is None:
        return False
    counted = with_targets(home, parts) or [""]
    return any(is_in(found, part) for found in (path, place) for part in counted)


def place_of(home: Path, path: str) -> str | None:
    """Where in the tree a path is once links are followed, "" for its root.

    None where that is outside, or nothing is there.
    """
    root, real = os.path.realpath(home), os.path.realpath(home / path)
    if not is_there(home, path) or os.path.commonpath((root, real)) != root:
        return None
    return "" if real == root else os.path.relpath(real, root)


def is_there(home: Path, path: str) -> bool:
    """Whether a path leads to something, as far as this user may see."""
    return os.path.exists(home / path)  # noqa: PTH110 - pathlib raises where access is denied


def is_in(path: str, part: str) -> bool:
    """Whether a path is a part of a tree or lies in it; everything lies in ""."""
    return not part or path == part or path.startswith(f"{part}/")
