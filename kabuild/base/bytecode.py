"""Imports a workspace's own Python files, and never what they were a moment ago.

Python takes a ``.pyc`` file for current if its source has the same size and was changed in the
same second. A rule that is edited twice in a second would then be the old one, under a key that
names the new one. Here the time counts in microseconds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

_MICROSECOND = 1000  # ns
_PREFIX = "kabuild_own_"


class ExactLoader(SourceFileLoader):
    """Loads a Python file; its ``.pyc`` file counts if the source is not a microsecond newer."""

    def path_stats(self, path: str) -> dict[str, int]:
        """What a ``.pyc`` file has to agree with; of the time 32 bits are kept."""
        stats = os.stat(path)  # noqa: PTH116 - a path of the import system
        return {"mtime": stats.st_mtime_ns // _MICROSECOND, "size": stats.st_size}


class _Finder:
    """Finds modules below synthetic packages as Python does, and has ``ExactLoader`` load them."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, or None for those of others."""
        if not name.startswith(_PREFIX):
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is not None and isinstance(found.loader, SourceFileLoader):
            found.loader = ExactLoader(found.loader.name, found.loader.path)
        return found


def own_package(name: str, doc: str, path: Sequence[str]) -> ModuleType:
    """A new synthetic package of the modules in the directories ``path``.

    ``name`` is to be another one each time; the package's begins with a prefix.
    """
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    package = ModuleType(f"{_PREFIX}{name}", doc)
    package.__path__ = list(path)
    sys.modules[package.__name__] = package
    return package
