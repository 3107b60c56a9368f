"""Garbage collection of the store in the background, after builds."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from kabuild.base.errors import KabuildError
from kabuild.sandbox.detached import start_detached
from kabuild.store import Store
from kabuild.store.eviction import COLLECTING
from kabuild.store.limit import size_limit
from kabuild.store.usage import Usage

WORTH = 1 << 20
"""Bytes added since the last check that make another check worthwhile."""

PAUSE = 600.0
"""Seconds between two collections: entries need time to age."""

SECONDS = 60.0
"""How long a collection in the background may take."""

SHARE = 0.9
"""The share of the limit that a collection leaves, so that not every build needs one."""


def collect_if_due(
    store: Store, cache_size: int | None, directory: Path, warn: Callable[[str], None]
) -> None:
    """Start a collection if this build made the store exceed its limit.

    It runs on its own, with the lowest priority, after or beside this process. ``cache_size`` is
    the limit from the workspace at ``directory``. Problems go to ``warn``: they must not fail a
    build.
    """
    if store.added.bytes < WORTH:
        return
    try:
        store.tell()
        limit = size_limit(cache_size)
        total = Usage(store.root).total()
        if (total is None or total > limit.bytes) and not _tried_lately(store.root):
            start_detached(
                [sys.executable, "-m", "kabuild", "cache", "gc", "--background"],
                directory=directory,
                env={"KABUILD_CACHE": str(store.root), "PYTHONPATH": _import_path()},
            )
    except (KabuildError, OSError) as error:
        warn(f"automatic cache cleanup is disabled: {error}")


def _tried_lately(root: Path) -> bool:
    try:
        return time.time() - (root / COLLECTING).stat().st_mtime < PAUSE
    except OSError:
        return False


def _import_path() -> str:
    """PYTHONPATH for the new process, so that it imports this kabuild."""
    own = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, [own, os.environ.get("PYTHONPATH", "")]))
