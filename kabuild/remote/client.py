"""One connection to one server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from kabuild.base.errors import Reason, RemoteError
from kabuild.model.digest import Digest
from kabuild.remote.blobs import RemoteBlobs
from kabuild.remote.capabilities import Capabilities, ask
from kabuild.remote.endpoint import Endpoint
from kabuild.remote.executions import RemoteExecutions
from kabuild.remote.messages import GET_RESULT, UPDATE_RESULT, get_result, update_result
from kabuild.remote.rpc import Rpc

PATIENCE = 10.0
"""Seconds that a server has to report its capabilities."""


class RemoteResults:
    """Entries by key, as the server has them: nothing in them is checked here."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc
        self._instance = rpc.endpoint.instance

    def get_many(self, keys: Sequence[Digest]) -> list[bytes | None]:
        """The entries of ``keys``, in their order; None for a key without one.

        Many questions are on their way at once. Raises RemoteError.
        """
        return self._rpc.wave(GET_RESULT, [get_result(self._instance, key) for key in keys])

    def put(self, key: Digest, entry: bytes) -> None:
        """Add an entry, or replace one. Raises RemoteError."""
        self.put_many({key: entry})

    def put_many(self, entries: Mapping[Digest, bytes]) -> None:
        """Add entries, or replace them; many calls are on their way at once. Raises RemoteError."""
        requests = [update_result(self._instance, *pair) for pair in entries.items()]
        if None in self._rpc.wave(UPDATE_RESULT, requests):
            raise RemoteError(Reason.REMOTE_REFUSED, "UpdateActionResult: NOT_FOUND")


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
