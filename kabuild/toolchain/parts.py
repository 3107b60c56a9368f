"""Parts of a tree that count, and where they lie once links are followed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def with_targets(home: Path, parts: Sequence[str]) -> list[str]:
    """The parts, and what of the tree those lead to that are links, or lie behind one.

    A link alone would pin a name: what is read through it could change unseen.
    """
    found = dict.fromkeys(parts)
    found |= dict.fromkeys(filter(None, (_target(home, part) for part in parts)))
    return list(found)


def is_counted(home: Path, path: str, parts: Sequence[str]) -> bool:
    """Whether a path, or what it leads to, lies in one of the parts; in any tree without parts."""
    if not parts:
        return True
    counted = with_targets(home, parts)
    return any(_is_in(place, part) for place in with_targets(home, [path]) for part in counted)


def _target(home: Path, path: str) -> str:
    """Where in the tree a path leads; empty where it is no link, or leads nowhere or outside."""
    real = (home / path).resolve()
    root = home.resolve()
    if real == root / path or not real.exists() or not real.is_relative_to(root):
        return ""
    return os.fspath(real.relative_to(root))


def _is_in(path: str, part: str) -> bool:
    return path == part or path.startswith(f"{part}/")
