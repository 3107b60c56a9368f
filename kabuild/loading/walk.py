"""Where a wildcard looks for packages."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator

from kabuild.loading.roots import BUILD_FILE, WORKSPACE_FILE

MOST_DIRECTORIES = 200_000
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""Removed or replaced meanwhile, or the start is not a directory, or a link to itself."""


def walk(
    root: str, start: str, left_out: Callable[[str, OSError], None] = lambda *_: None
) -> Iterator[tuple[str, bool]]:
    """The directories of the workspace ``root`` at and below ``start``, sorted.

    Each with whether it is a package. Skips dot directories, ``out`` at the root, virtual
    environments and other workspaces; unreadable and too deep directories are passed to
    ``left_out``. Raises ``OSError``, also if there are too many.
    """
    stack = [start]
    for count in itertools.count():
        if not stack:
            return
        if count == MOST_DIRECTORIES:
            what = f"has more than {MOST_DIRECTORIES:,} directories, too many for a workspace"
            raise OSError(errno.EFBIG, what, start)
        directory = stack.pop()
        try:
            with os.scandir(directory) as entries:
                found = {entry.name: entry for entry in entries}
        except OSError as error:
            if error.errno in _ABSENT:
                continue
            if not isinstance(error, PermissionError) and error.errno != errno.ENAMETOOLONG:
                raise
            left_out(directory, error)
            continue
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
