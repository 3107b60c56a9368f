"""The paths of one directory."""

from __future__ import annotations

import os
from pathlib import Path


def with_aliases(directory: str) -> tuple[str, ...]:
    """A directory's real path, its given path, and the links between them.

    A sandbox shows it under all of them, since its files may use any: scripts and links in
    /opt/rocm, for example, or a virtual environment that names its Python.
    """
    path = Path(os.path.normpath(directory))
    found = [os.path.realpath(directory), str(path)]
    while path.is_symlink():
        path = Path(os.path.normpath(path.parent.resolve() / path.readlink()))
        found.append(str(path))
    return tuple(dict.fromkeys(found))
