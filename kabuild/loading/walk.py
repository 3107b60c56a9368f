"""Where a wildcard looks for packages."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kabuild.loading.roots import BUILD_FILE, WORKSPACE_FILE


def walk(root: str, start: str) -> Iterator[tuple[str, bool]]:
    """The directories of the workspace ``root`` at and below ``start``, sorted.

    Each with whether it is a package. Not looked into: dot directories, ``out`` at the root,
    virtual environments, and other workspaces. Raises ``OSError``.
    """
    stack = [start]
    while stack:
        directory = stack.pop()
        with os.scandir(directory) as entries:
            found = {entry.name: entry for entry in entries}
        at_root = directory == root
        if "pyvenv.cfg" in found or (WORKSPACE_FILE in found and not at_root):
            continue
        yield directory, BUILD_FILE in found
        below = sorted(
            entry.path
            for entry in found.values()
            if entry.is_dir(follow_symlinks=False)
            and not entry.name.startswith(".")
            and not (at_root and entry.name == "out")
        )
        stack.extend(reversed(below))
