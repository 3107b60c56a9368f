"""A cache that several machines share, behind the local store.

Its results are imported: checked, stored and sealed as if they had been made here; then a lookup
finds them. Results that were made here are sent to it on request. It can cost time and never a
verdict: a result counts only with the signature of somebody whom the workspace trusts, every blob
is hashed, and a server that fails is left out of the rest of the build, with one warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Self

from kabuild.base.clock import Clock, SystemClock
from kabuild.base.errors import KabuildError, Reason, RemoteError
from kabuild.base.listing import abridged, counted
from kabuild.execution.prepared import Prepared
from kabuild.execution.upload import Parcel, Uploader
from kabuild.model.action import Action
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult
from kabuild.remote.loss import Loss
from kabuild.remote.signing import Distrust, Signer, TrustedKeys
from kabuild.store.action_cache import blobs_of, encode
from kabuild.store.result_closure import trees_named_by
from kabuild.store.storable import decode_foreign
from kabuild.store.store import Store

if TYPE_CHECKING:
    from kabuild.remote.client import RemoteCache

WAVE = 2048
"""Keys that are asked for together, and whose blobs are."""

_CHECKERS = 3
"""Threads that check signatures, in which OpenSSL runs beside the interpreter."""

_PART = 64
"""Signatures that one of them checks before it takes more; as few need no threads."""


@dataclass(frozen=True)
class Terms:
    """The results that a build shares, and the server that it shares them with.

    Attributes:
        name: the cache, for people.
        trusted: whose results count.
        accept: whether results are taken over from it.
        signer: signs the results that are sent; None if none are.
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


@dataclass(frozen=True)
class _Said:
    """What a trusted entry states of an action, and the trees that it names."""

    prepared: Prepared
    entry: bytes
    trees: Sequence[Digest]


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
        asked = [*{p.key: p for p in shared}.values()] if terms.accept else []
        try:
            with ThreadPoolExecutor(_CHECKERS, "kabuild-check") as checkers:
                for at in range(0, len(asked), WAVE):
                    if self._is_off or self._stopped():
                        break
                    self._take_over(asked[at : at + WAVE], checkers)
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

    def _take_over(self, wave: Sequence[Prepared], checkers: Executor) -> None:
        """Take over results that count and of which all blobs come. Raises RemoteError, StoreError.

        One step after another: threads that ask, check and write at once take the interpreter from
        each other with every small file, and all of it together takes longer.
        """
        entries = self._connected().results.get_many([prepared.key for prepared in wave])
        found = self._trusted(wave, entries, checkers)
        server, cas = self._connected(), self._store.cas
        trees = chain.from_iterable(said.trees for said in found)
        lost = server.blobs.fetch(cas.missing(trees), self._store)
        results = [
            (said, result)
            for said in found
            if self._has_all(said.trees, lost) and (result := self._decoded(said.entry))
        ]
        needed = chain.from_iterable(blobs_of(result) for _, result in results)
        lost = server.blobs.fetch(cas.missing(needed), self._store)
        self._keep([said for said, result in results if self._has_all(blobs_of(result), lost)])

    def _trusted(
        self, wave: Sequence[Prepared], entries: Sequence[bytes | None], checkers: Executor
    ) -> list[_Said]:
        """What the entries that count state."""
        pairs = zip(wave, entries, strict=True)
        there = [(prepared, entry) for prepared, entry in pairs if entry is not None]
        parts = [there[at : at + _PART] for at in range(0, len(there), _PART)]
        use_threads = len(parts) > 1
        checked = (checkers.map if use_threads else map)(self._checked, parts)
        found = list[_Said]()
        for prepared, said in chain.from_iterable(checked):
            if isinstance(said, Distrust):
                self._count(said.value)
                continue
            try:
                found.append(_Said(prepared, said, trees_named_by(said)))
            except ValueError:
                self._count(Distrust.DAMAGED.value)
        return found

    def _checked(
        self, part: Sequence[tuple[Prepared, bytes]]
    ) -> list[tuple[Prepared, bytes | Distrust]]:
        """What entries state, or why they do not count."""
        now, trusted = self._clock.wall(), self._terms.trusted
        return [(prepared, trusted.check(prepared.key, entry, now)) for prepared, entry in part]

    def _decoded(self, entry: bytes) -> ActionResult | None:
        """The result in a statement; None if no build would cache it."""
        try:
            result = decode_foreign(entry, self._store.cas)
        except ValueError:
            result = None
        if result is None or result.exit_code:
            self._count(Distrust.DAMAGED.value)
            return None
        return result

    def _has_all(self, needed: Iterable[Digest], lost: Mapping[Digest, Loss]) -> bool:
        """Whether the blobs of one result came; counts the result if not."""
        gone = [digest for digest in needed if digest in lost]
        if not gone:
            return True
        damaged = [digest for digest in gone if lost[digest] is Loss.DAMAGED]
        with self._guard:
            self._damaged += damaged
        self._count((Loss.DAMAGED if damaged else Loss.GONE).value)
        return False

    def _keep(self, results: Sequence[_Said]) -> None:
        """Store results, and what their keys are made of, so that they can be told and exported."""
        cas = self._store.cas
        commands = {said.prepared.command for said in results}
        roots = {said.prepared.root.digest: said.prepared.root for said in results}
        directories = {d.wire for root in roots.values() for d in root.all_directories()}
        for blob in commands | directories:
            cas.put(blob)
        for said in results:
            cas.put(said.prepared.message)
            self._store.actions.put_message(said.prepared.key, said.entry)

    def _count(self, why: str) -> None:
        """One result did not count."""
        with self._guard:
            self._refused[why] += 1

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
        """Which results did not count; empty if all did."""
        total = self._refused.total()
        if not total:
            return ""
        noun = counted(total, "result")
        why = ", ".join(f"{count} {what}" for what, count in sorted(self._refused.items()))
        named = abridged([f"blob {digest}" for digest in dict.fromkeys(self._damaged)])
        where = f"; damaged on the server: {named}" if named else ""
        return f"{noun} of the shared cache {self._terms.name} did not count ({why}){where}"
