"""The modules that a process may import before it forks, for whoever calls kabuild there."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator

_WITH_EXTRA = {
    *(f"kabuild.remote.{name}" for name in ("blobs", "capabilities", "client", "results", "rpc")),
    "kabuild.worker.metrics",
}
"""They need an extra, or start threads, which no process has that forks."""

_LATE = ("structlog",)
"""What kabuild imports at the first action that runs; it takes longer than many an action."""


def modules() -> Iterator[str]:
    """Their names; a module that runs when it is imported is none of them."""
    import kabuild

    yield from _LATE

    for module in pkgutil.walk_packages(kabuild.__path__, "kabuild."):
        if not module.name.endswith("__main__") and module.name not in _WITH_EXTRA:
            yield module.name
