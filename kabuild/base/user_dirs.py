"""The directories of a user, by the XDG base directory specification.

https://specifications.freedesktop.org/basedir-spec/latest: relative paths in its variables are
invalid and are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def xdg_directory(variable: str, env: Mapping[str, str]) -> Path | None:
    """The directory in ``variable``; None if it is unset or a relative path."""
    path = Path(env.get(variable) or ".")
    return path if path.is_absolute() else None
