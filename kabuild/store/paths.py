"""Where the store is, and where things are in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

LEASES = "leases"
"""Directory of the lock files by which processes share devices, in a store."""

SCRATCH = "tmp"
"""Directory of temporary files, by process, in a store."""

MEMORIES = "memories"
"""Directory of what earlier builds came to, in a store."""

JOURNALS = "journals"
"""Directory of what interrupted actions had found out, in a store."""

TOOLCHAINS = "toolchains"
"""Directory of unpacked toolchains, in a store."""


def default_path(env: Mapping[str, str] = os.environ) -> Path:
    """``$KABUILD_CACHE``, else ``$XDG_CACHE_HOME/kabuild``, else ``~/.cache/kabuild``."""
    if chosen := env.get("KABUILD_CACHE"):
        return Path(chosen).expanduser().absolute()
    if base := env.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "kabuild"
    return Path(env.get("HOME") or "~").expanduser() / ".cache" / "kabuild"
