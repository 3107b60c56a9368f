"""The action cache of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kabuild.base.errors import Reason, RemoteError
from kabuild.model.digest import Digest
from kabuild.remote.messages import GET_RESULT, UPDATE_RESULT, get_result, update_result
from kabuild.remote.rpc import Rpc


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
