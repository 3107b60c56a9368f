"""The results that patterns select: those that a build of them would use."""

from __future__ import annotations

from pathlib import Path

from kabuild.base.errors import Reason, UsageError
from kabuild.builder import Builder
from kabuild.cli.outputs import check_outputs
from kabuild.loading.request import Request
from kabuild.store import Store
from kabuild.store.contents import scan


def keys_of(builder: Builder, request: Request, output: Path) -> list[str]:
    """The hashes of the keys that ``kabuild test`` would use.

    Raises UsageError if there are none, if ``output`` is a file that it reads, and as ``load`` and
    ``plan``.
    """
    planned = builder.plan(request)
    check_outputs(planned, {"FILE": output})
    forecasts = builder.foresee(request, planned).values()
    keys = [item.settled.key.hash for item in forecasts if item.settled and item.settled.key]
    if not keys:
        patterns = " ".join(request.patterns)
        raise _nothing(f"no result of {patterns}", patterns)
    return keys


def all_keys(store: Store) -> list[str]:
    """The hashes of the keys of all results. Raises UsageError if there are none."""
    keys = [*scan(store.root).results]
    if not keys:
        raise _nothing("no result", "//...")
    return keys


def _nothing(what: str, patterns: str) -> UsageError:
    return UsageError(
        Reason.NOT_PUBLISHABLE, f"the store has {what}", hint=f"kabuild test {patterns}"
    )
