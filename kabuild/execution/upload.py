"""Sending results to a shared cache, beside the build: no action waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kabuild.base import threads
from kabuild.base.errors import KabuildError
from kabuild.model.digest import Digest
from kabuild.remote.signing import Signer
from kabuild.store.result_closure import files_of, named_by
from kabuild.store.store import Store

if TYPE_CHECKING:
    from kabuild.remote.client import RemoteCache

_POLL = 0.2


@dataclass(frozen=True)
class Parcel:
    """One result to send: its key, its entry without a signature, and its REAPI ``Command``."""

    key: Digest
    entry: bytes
    command: Digest


class Uploader:
    """Sends parcels in the order given, on a thread of its own.

    ``connect`` gives the server. ``failed`` hears of the first error, once; what is left is not
    sent then.
    """

    def __init__(
        self,
        store: Store,
        signer: Signer,
        connect: Callable[[], RemoteCache],
        failed: Callable[[Exception], None],
    ) -> None:
        self._store = store
        self._signer = signer
        self._connect = connect
        self._failed = failed
        self._parcels: queue.SimpleQueue[Parcel | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._broken = False

    def send(self, parcel: Parcel) -> None:
        """Send a result, some time before ``finish`` returns."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="kabuild-upload", daemon=True)
            threads.start(self._thread)
        self._parcels.put(parcel)

    def finish(self, stopped: Callable[[], bool]) -> None:
        """Wait until all is sent, sending has failed, or ``stopped`` returns true."""
        self._parcels.put(None)
        while self._thread and self._thread.is_alive() and not stopped():
            self._thread.join(_POLL)

    def _work(self) -> None:
        while parcel := self._parcels.get():
            if self._broken:
                continue
            try:
                self._send(parcel)
            except (KabuildError, OSError, ValueError) as error:
                self._broken = True
                self._failed(error)

    def _send(self, parcel: Parcel) -> None:
        """Blobs first: a server may refuse a result without them."""
        cas, server = self._store.cas, self._connect()
        files, trees = named_by(parcel.entry)
        inside = {blob for tree in trees for blob in files_of(tree, cas.get)}
        server.blobs.upload([*files, *trees, *inside, parcel.key, parcel.command], cas)
        server.results.put(parcel.key, self._signer.sign(parcel.key, parcel.entry))
