"""Names of a package that are imported when they are first used.

A package states its public names in its ``__init__``. Importing them all there would make the
importer of one small module pay for all others.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as in kabuild/__init__.py
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for ``package``: ``homes`` has the module of each public name."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return get
