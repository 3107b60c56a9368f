"""The modules of kabuild that a process may import before it forks."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator

_WITH_GRPC = {
    *(f"kabuild.remote.{name}" for name in ("blobs", "capabilities", "client", "results", "rpc")),
}
"""They need an extra, and start threads, which no process has that forks."""


def modules() -> Iterator[str]:
    """Their names; a module that runs when it is imported is none of them."""
    import kabuild

    for module in pkgutil.walk_packages(kabuild.__path__, "kabuild."):
        if not module.name.endswith("__main__") and module.name not in _WITH_GRPC:
            yield module.name
