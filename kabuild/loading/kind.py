"""What stands at a path, for people."""

from __future__ import annotations

from pathlib import Path


def kind_of(path: Path) -> str:
    """``a directory``, say; empty if nothing is there."""
    if path.is_dir():
        return "a directory"
    if path.is_file():
        return "a file"
    if path.exists():
        return "a device or a pipe"
    return "a link to nothing" if path.is_symlink() else ""
