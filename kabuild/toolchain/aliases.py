"""The paths that lead to one directory."""

from __future__ import annotations

import os
from pathlib import Path


def with_aliases(directory: str) -> tuple[str, ...]:
    """A directory without links in its path, its own path, and the links on the way there.

    A sandbox shows it by all of them: what it holds may name it by one, such as scripts and links
    in /opt/rocm, or a virtual environment the Python that it was made with.
    """
    path = Path(os.path.normpath(directory))
    found = [os.path.realpath(directory), str(path)]
    while path.is_symlink():
        path = Path(os.path.normpath(path.parent.resolve() / path.readlink()))
        found.append(str(path))
    return tuple(dict.fromkeys(found))
