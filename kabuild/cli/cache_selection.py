"""Which results patterns mean: those that a build of them would find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kabuild.base.errors import Reason, UsageError
from kabuild.loading.request import Request
from kabuild.pipeline import foresee, load, plan
from kabuild.store import Store


def keys_of(store: Store, patterns: Sequence[str], flags: Mapping[str, Any]) -> list[str]:
    """The hashes of the keys that ``kabuild test PATTERNS`` would be answered by.

    Raises UsageError where there is none, and as ``load`` and ``plan``.
    """
    request = Request(patterns=tuple(patterns), cwd=Path.cwd(), fetch=False, **flags)
    planned = plan(request, load(request), store)
    forecasts = foresee(request, planned, store).values()
    keys = [item.settled.key.hash for item in forecasts if item.settled and item.settled.key]
    if not keys:
        raise UsageError(
            Reason.NOT_PUBLISHABLE,
            f"the store has no result of {' '.join(patterns)}",
            hint=f"kabuild test {' '.join(patterns)}",
        )
    return keys
