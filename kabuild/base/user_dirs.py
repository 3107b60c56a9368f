"""The directories of a user, by the XDG base directory specification.

https://specifications.freedesktop.org/basedir-spec/latest: relative paths in its variables are
invalid and are ignored.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path


def home_directory(env: Mapping[str, str]) -> Path:
    """``$HOME`` if it is absolute, else what the system says, or else ``/``. Never fails."""
    home = Path(env.get("HOME") or ".")
    if home.is_absolute():
        return home
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path("/")


def xdg_directory(variable: str, env: Mapping[str, str]) -> Path | None:
    """The directory in ``variable``; None if it is unset or a relative path."""
    path = Path(env.get(variable) or ".")
    return path if path.is_absolute() else None
