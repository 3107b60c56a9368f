"""Sending results to a shared cache, beside the build: no action waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
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

_MOST = 512
"""Parcels that are sent together, if so many wait."""


@dataclass(frozen=True)
class Parcel:
    """One result to send: its key, its entry without a signature, and its REAPI ``Command``."""

    key: Digest
    entry: bytes
    command: Digest


class Uploader:
    """Sends parcels in the order given, on its thread; those that wait are sent together.

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
        self._is_over = False

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
        while parcels := self._waiting():
            if self._broken:
                continue
            try:
                self._send(parcels)
            except (KabuildError, OSError, ValueError) as error:
                self._broken = True
                self._failed(error)

    def _waiting(self) -> list[Parcel]:
        """The parcels that wait, as soon as one does; none at the end."""
        parcels = list[Parcel]()
        if self._is_over:
            return parcels
        with suppress(queue.Empty):
            while len(parcels) < _MOST:
                parcel = self._parcels.get(block=not parcels)
                if parcel is None:
                    self._is_over = True
                    break
                parcels.append(parcel)
        return parcels

    def _send(self, parcels: Sequence[Parcel]) -> None:
        """Blobs first: a server may refuse a result without them."""
        server = self._connect()
        server.blobs.upload(chain.from_iterable(map(self._blobs, parcels)), self._store.cas)
        sign = self._signer.sign
        server.results.put_many({p.key: sign(p.key, p.entry) for p in parcels})

    def _blobs(self, parcel: Parcel) -> Iterator[Digest]:
        """What a result needs on the server."""
        files, trees = named_by(parcel.entry)
        yield from (parcel.key, parcel.command, *files, *trees)
        for tree in trees:
            yield from files_of(tree, self._store.cas.get)
