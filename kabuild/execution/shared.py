"""A cache that several machines share, behind the local store.

Its results are imported: checked, stored and sealed as if they had been made here; then a lookup
finds them. Results that were made here are sent to it on request. It can cost time and never a
verdict: a result counts only with the signature of somebody whom the workspace trusts, every blob
is hashed, and a server that fails is left out of the rest of the build, with one warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Self

from kabuild.base.clock import Clock, SystemClock
from kabuild.base.errors import KabuildError, Reason, RemoteError
from kabuild.base.listing import abridged
from kabuild.execution.prepared import Prepared
from kabuild.execution.upload import Parcel, Uploader
from kabuild.model.action import Action
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult
from kabuild.remote.loss import Loss
from kabuild.remote.signing import Distrust, Signer, TrustedKeys
from kabuild.store.action_cache import blobs_of, decode, encode
from kabuild.store.result_closure import named_by
from kabuild.store.store import Store

if TYPE_CHECKING:
    from kabuild.remote.client import RemoteCache

WAVE = 512
"""Keys that are asked for together, and whose blobs are."""


@dataclass(frozen=True)
class Terms:
    """What a build shares, and with whom.

    Attributes:
        name: the cache, for people.
        trusted: whose results count.
        accept: whether results are taken over from it.
        signer: signs what is sent to it; None where nothing is.
        private: the labels of actions that stay on this machine, besides those with secrets.
    """

    name: str
    trusted: TrustedKeys
    accept: bool = True
    signer: Signer | None = None
    private: frozenset[str] = field(default=frozenset(), repr=False)

    def include(self, action: Action) -> bool:
        """Whether anything of ``action`` may leave this machine."""
        return not action.secrets and str(action.label) not in self.private


class SharedCache:
    """One shared cache during one build; a context, at whose end all is sent and told.

    ``connect`` is called when the server is needed first, and raises RemoteError. ``warn`` hears of
    trouble, each kind once. ``stopped`` says whether the user ended the build.
    """

    def __init__(
        self,
        store: Store,
        terms: Terms,
        connect: Callable[[], RemoteCache],
        *,
        warn: Callable[[str], None],
        stopped: Callable[[], bool] = lambda: False,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._terms = terms
        self._connect = connect
        self._warn = warn
        self._stopped = stopped
        self._clock = clock or SystemClock()
        self._guard = Lock()
        self._server: RemoteCache | None = None
        self._is_off = False
        self._refused: Counter[str] = Counter()
        self._damaged: list[Digest] = []
        self._uploader = (
            Uploader(store, terms.signer, self._connected, self._not_sent) if terms.signer else None
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Send what is still to be sent, say which results did not count, and disconnect."""
        if self._uploader:
            self._uploader.finish(self._stopped)
        if text := self._told():
            self._warn(text)
        with self._guard:
            server, self._server = self._server, None
            self._is_off = True
        if server:
            server.close()

    def fetch(self, wanted: Sequence[Prepared]) -> None:
        """Take over the results of ``wanted`` that the cache has and that count.

        Never raises for what the server does: what it does not give is made here.
        """
        terms = self._terms
        shared = [p for p in wanted if p.hermetic and terms.include(p.action)]
        by_key = {prepared.key: prepared for prepared in shared}
        keys = [*by_key] if terms.accept else []
        for at in range(0, len(keys), WAVE):
            if self._is_off or self._stopped():
                return
            try:
                self._fetch({key: by_key[key] for key in keys[at : at + WAVE]})
            except KabuildError as error:
                self._give_up(error)

    def offer(self, prepared: Prepared, result: ActionResult) -> None:
        """Send a result that was made here, if it may leave; returns at once."""
        if self._uploader is None or self._is_off:
            return
        if not (prepared.hermetic and result.hermetic and self._terms.include(prepared.action)):
            return
        entry = encode(result, self._store.cas, ended=self._clock.wall())
        self._uploader.send(Parcel(prepared.key, entry, Digest.of(prepared.command)))

    def _fetch(self, wanted: Mapping[Digest, Prepared]) -> None:
        """Import one wave. Raises RemoteError and StoreError."""
        server, cas = self._connected(), self._store.cas
        said = self._trusted([*wanted], server.results.get_many([*wanted]))
        trees = {key: named_by(entry)[1] for key, entry in said.items()}
        lost = server.blobs.fetch(cas.missing(chain.from_iterable(trees.values())), self._store)
        results: dict[Digest, ActionResult] = {}
        for key, entry in said.items():
            if self._has_all(trees[key], lost) and (result := self._decoded(entry)):
                results[key] = result
        needed = {key: [*blobs_of(result)] for key, result in results.items()}
        lost = server.blobs.fetch(cas.missing(chain.from_iterable(needed.values())), self._store)
        for key, result in results.items():
            if self._has_all(needed[key], lost):
                self._keep(wanted[key], result)

    def _trusted(
        self, keys: Sequence[Digest], entries: Sequence[bytes | None]
    ) -> dict[Digest, bytes]:
        """What the entries that count state, by their keys."""
        now, found = self._clock.wall(), dict[Digest, bytes]()
        for key, entry in zip(keys, entries, strict=True):
            if entry is None:
                continue
            said = self._terms.trusted.check(key, entry, now)
            if not isinstance(said, Distrust) and not _is_readable(said):
                said = Distrust.DAMAGED
            if isinstance(said, Distrust):
                self._refused[said.value] += 1
            else:
                found[key] = said
        return found

    def _decoded(self, entry: bytes) -> ActionResult | None:
        """The result in a statement; None if no build would cache it."""
        try:
            result = decode(entry, self._store.cas)
        except ValueError:
            result = None
        if result is None or result.exit_code:
            self._refused[Distrust.DAMAGED.value] += 1
            return None
        return result

    def _has_all(self, needed: Iterable[Digest], lost: Mapping[Digest, Loss]) -> bool:
        """Whether the blobs of one result came; counts the result if not."""
        gone = [digest for digest in needed if digest in lost]
        if not gone:
            return True
        damaged = [digest for digest in gone if lost[digest] is Loss.DAMAGED]
        self._damaged += damaged
        self._refused[(Loss.DAMAGED if damaged else Loss.GONE).value] += 1
        return False

    def _keep(self, prepared: Prepared, result: ActionResult) -> None:
        """Store a result, and what its key is made of, so that it can be told and exported."""
        cas = self._store.cas
        cas.put(prepared.message)
        cas.put(prepared.command)
        for directory in prepared.root.all_directories():
            cas.put(directory.wire)
        self._store.actions.put(prepared.key, result)

    def _connected(self) -> RemoteCache:
        """The server, once it has said what it can do. Raises RemoteError."""
        with self._guard:
            if self._is_off:
                raise RemoteError(Reason.INTERRUPTED, "the shared cache is not used any more")
            if self._server is None:
                self._server = self._connect()
            return self._server

    def _give_up(self, error: KabuildError) -> None:
        """Go on without the server, or end with the user's build."""
        was_off, self._is_off = self._is_off, True
        if not was_off and error.reason is not Reason.INTERRUPTED:
            self._warn(
                f"the rest of this build goes without the shared cache {self._terms.name}: {error}"
            )

    def _not_sent(self, error: Exception) -> None:
        """Results stay here; one who may not write may still read."""
        if self._is_off:
            return
        reason = error.reason if isinstance(error, KabuildError) else None
        if isinstance(error, KabuildError) and reason is Reason.REMOTE_UNAVAILABLE:
            self._give_up(error)
        elif reason is not Reason.INTERRUPTED:
            self._warn(f"results are not sent to the shared cache {self._terms.name}: {error}")

    def _told(self) -> str:
        """Which results did not count; empty where all did."""
        total = self._refused.total()
        if not total:
            return ""
        noun = "1 result" if total == 1 else f"{total} results"
        why = ", ".join(f"{count} {what}" for what, count in sorted(self._refused.items()))
        named = abridged([f"blob {digest}" for digest in dict.fromkeys(self._damaged)])
        where = f"; damaged on the server: {named}" if named else ""
        return f"{noun} of the shared cache {self._terms.name} did not count ({why}){where}"


def _is_readable(said: bytes) -> bool:
    try:
        named_by(said)
    except ValueError:
        return False
    return True
