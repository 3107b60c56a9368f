"""What tests of the shared cache need beyond what all tests do."""

from __future__ import annotations

import pytest


def require_fleet() -> None:
    """Skip the module where the extra is not installed.

    kabuild's package comes first: it has gRPC leave forks alone, without which no other test of
    this process would get a sandbox.
    """
    import kabuild.remote

    assert kabuild.remote
    for name in ("grpc", "cryptography"):
        pytest.importorskip(name, reason="pip install 'kabuild[fleet]'")
