"""The paths of the store and of its parts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from kabuild.base.errors import Reason, StoreError
from kabuild.base.seal import data_home
from kabuild.base.user_dirs import xdg_directory

LEASES = "leases"
"""Directory of the lock files by which processes share devices, in a store."""

SCRATCH = "tmp"
"""Directory of temporary files, by process, in a store."""

MEMORIES = "memories"
"""Directory of memories of earlier builds, in a store."""

INDEX = "index"
"""File of the file index, in a store."""

RECORDS = "records.json"
"""File of digests from the RECORDs of installed distributions, in a store."""

JOURNALS = "journals"
"""Directory of journals, beside the user's key."""

TOOLCHAINS = "toolchains"
"""Directory of unpacked toolchains, in a store."""


def default_path(env: Mapping[str, str] = os.environ) -> Path:
    """``$KABUILD_CACHE``, else ``$XDG_CACHE_HOME/kabuild``, else ``~/.cache/kabuild``."""
    if chosen := env.get("KABUILD_CACHE"):
        return _expanded(chosen).absolute()
    if base := xdg_directory("XDG_CACHE_HOME", env):
        return base / "kabuild"
    return _expanded(env.get("HOME") or "~") / ".cache" / "kabuild"


def _expanded(text: str) -> Path:
    """A path that may begin with ``~``. Raises StoreError if there is no home directory."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise StoreError(
            Reason.STORE_UNWRITABLE,
            f"no place for the store: '{text}' is not a home directory",
            hint="set KABUILD_CACHE to a directory that you can write",
        ) from None


def journals_of(store: Path, env: Mapping[str, str] = os.environ) -> Path:
    """The journals of a store: outside of it, since they have no seals."""
    name = hashlib.sha256(os.fsencode(store)).hexdigest()[:16]
    return data_home(env) / JOURNALS / name
