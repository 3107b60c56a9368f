"""One connection to one server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from kabuild.remote.blobs import RemoteBlobs
from kabuild.remote.capabilities import Capabilities, ask
from kabuild.remote.endpoint import Endpoint
from kabuild.remote.executions import RemoteExecutions
from kabuild.remote.results import RemoteResults
from kabuild.remote.rpc import Rpc

PATIENCE = 10.0
"""Seconds that a server has to report its capabilities."""


class RemoteCache:
    """The blobs and the results of one server, whose capabilities are known.

    ``executions`` is of use where the capabilities say so.
    """

    def __init__(self, rpc: Rpc, capabilities: Capabilities) -> None:
        self._rpc = rpc
        self.capabilities = capabilities
        self.blobs = RemoteBlobs(rpc, capabilities.batch)
        self.results = RemoteResults(rpc)
        self.executions = RemoteExecutions(rpc)

    @classmethod
    def connect(
        cls, endpoint: Endpoint, *, stopped: Callable[[], bool] = lambda: False
    ) -> RemoteCache:
        """Connect, and ask for capabilities. ``stopped`` ends calls early. Raises RemoteError."""
        rpc = Rpc(endpoint, stopped=stopped)
        try:
            return cls(rpc, ask(rpc, PATIENCE))
        except BaseException:
            rpc.close()
            raise

    def close(self) -> None:
        """End the connection."""
        self._rpc.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
