"""Where the store is, and where things are in it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from kabuild.base.errors import Reason, StoreError
from kabuild.base.seal import data_home

LEASES = "leases"
"""Directory of the lock files by which processes share devices, in a store."""

SCRATCH = "tmp"
"""Directory of temporary files, by process, in a store."""

MEMORIES = "memories"
"""Directory of what earlier builds came to, in a store."""

INDEX = "index"
"""File of the digests of files that were hashed already, in a store."""

RECORDS = "records.json"
"""File of what the RECORDs of installed distributions say, in a store."""

JOURNALS = "journals"
"""Directory of what interrupted actions had found out, beside the user's key."""

TOOLCHAINS = "toolchains"
"""Directory of unpacked toolchains, in a store."""


def default_path(env: Mapping[str, str] = os.environ) -> Path:
    """``$KABUILD_CACHE``, else ``$XDG_CACHE_HOME/kabuild``, else ``~/.cache/kabuild``."""
    if chosen := env.get("KABUILD_CACHE"):
        return _expanded(chosen).absolute()
    if base := env.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "kabuild"
    return _expanded(env.get("HOME") or "~") / ".cache" / "kabuild"


def _expanded(text: str) -> Path:
    """A path that may begin with ``~``. Raises StoreError where there is none."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise StoreError(
            Reason.STORE_UNWRITABLE,
            f"no place for the store: '{text}' is not a home directory",
            hint="set KABUILD_CACHE to a directory that you can write",
        ) from None


def journals_of(store: Path, env: Mapping[str, str] = os.environ) -> Path:
    """Where the journals of a store are: outside of it, for they are written without a seal."""
    name = hashlib.sha256(os.fsencode(store)).hexdigest()[:16]
    return data_home(env) / JOURNALS / name
