"""Which results patterns mean: those that a build of them would find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kabuild.base.errors import Reason, UsageError
from kabuild.loading.request import Request
from kabuild.pipeline import foresee, load, plan
from kabuild.store import Store
from kabuild.store.contents import scan


def keys_of(store: Store, patterns: Sequence[str], flags: Mapping[str, Any]) -> list[str]:
    """The hashes of the keys that ``kabuild test PATTERNS`` would be answered by.

    Raises UsageError where there is none, and as ``load`` and ``plan``.
    """
    request = Request(patterns=tuple(patterns), cwd=Path.cwd(), fetch=False, **flags)
    planned = plan(request, load(request), store)
    forecasts = foresee(request, planned, store).values()
    keys = [item.settled.key.hash for item in forecasts if item.settled and item.settled.key]
    if not keys:
        raise _nothing(f"no result of {' '.join(patterns)}", " ".join(patterns))
    return keys


def all_keys(store: Store) -> list[str]:
    """The hashes of the keys of all results. Raises UsageError where there is none."""
    keys = [*scan(store.root).results]
    if not keys:
        raise _nothing("no result", "//...")
    return keys


def _nothing(what: str, patterns: str) -> UsageError:
    return UsageError(
        Reason.NOT_PUBLISHABLE, f"the store has {what}", hint=f"kabuild test {patterns}"
    )
