"""Runs actions on the workers of a server of the Remote Execution API.

A worker's result counts only with the signature of somebody whom the workspace trusts, over the
key, and every blob is hashed. So a server can cost time and never a verdict: what it loses is sent
again, what it forgets is run again, and what it cannot do is a failure of the machine.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_hex
from threading import Event, Lock
from typing import TYPE_CHECKING, Self

from kabuild.base.clock import Clock, SystemClock
from kabuild.base.errors import InfraError, Reason, RemoteError
from kabuild.base.printing import in_line
from kabuild.execution.placement import Placement, Routing
from kabuild.execution.prepared import Prepared
from kabuild.execution.remote_run import (
    DistrustedError,
    LostError,
    NodeError,
    NoNodeError,
    RemoteRun,
)
from kabuild.execution.strategy import Execution
from kabuild.execution.wire import (
    ENDED,
    FAULT,
    GRACE,
    PROGRAM,
    REMEMBERED,
    REPORT,
    RESULT,
    WireAction,
    report_key,
    wire_action,
    wire_survey,
)
from kabuild.model.action import OUTPUT_ROOT, Action
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult
from kabuild.remote.execution_messages import Answer, Code, WorkerResult
from kabuild.remote.signing import Distrust, TrustedKeys
from kabuild.remote.timeouts import Timeouts
from kabuild.store.action_cache import blobs_of
from kabuild.store.result_closure import trees_named_by
from kabuild.store.storable import decode_foreign
from kabuild.store.store import Store
from kabuild.store.trees import MOST_MESSAGE, parse_tree

if TYPE_CHECKING:
    from kabuild.remote.client import RemoteCache

_GONE = frozenset({Code.FAILED_PRECONDITION, Code.NOT_FOUND})
_PASSING = frozenset(
    {Code.UNKNOWN, Code.RESOURCE_EXHAUSTED, Code.ABORTED, Code.INTERNAL, Code.UNAVAILABLE}
)
_LONGEST_PAUSE = 2.0
_MOST_SAID = 2000
_FULL = "free disk space on the workers' machines: buildbox-casd leaves 2 GB free (--reserved)"


@dataclass(frozen=True)
class FleetTerms:
    """What a build has a fleet do.

    Attributes:
        name: the server, for people.
        trusted: whose results count.
        placement: which actions it runs.
        queued: seconds that an action may wait for a worker.
        away: seconds that the server may be away, or the node of a worker.
        program: what workers start.
    """

    name: str
    trusted: TrustedKeys
    placement: Placement = field(default_factory=Placement)
    queued: float = 600.0
    away: float = 60.0
    program: str = PROGRAM


class Fleet:
    """One server's workers during one build; a context. Used from many threads.

    ``connect`` is called when an action is to run, and raises RemoteError.
    """

    def __init__(
        self,
        store: Store,
        terms: FleetTerms,
        connect: Callable[[], RemoteCache],
        *,
        clock: Clock | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._terms = terms
        self._connect = connect
        self._clock = clock or SystemClock()
        self._pause = pause
        self._guard = Lock()
        self._server: RemoteCache | None = None
        self._there: set[Digest] = set()
        self._broken: RemoteError | None = None
        self._awaits_nodes = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._guard:
            server, self._server = self._server, None
        if server:
            server.close()

    def takes(self, action: Action) -> bool:
        """Whether the fleet runs ``action``."""
        return not self._terms.placement.stays(action)

    def run(self, prepared: Prepared, cancel: Event) -> Execution:
        """Run an action whose inputs are in the store, and store its outputs; see Strategy."""
        action, terms = prepared.action, self._terms
        routing = terms.placement.routing(action) or {}
        wire = wire_action(prepared, routing, terms.program)
        inputs = [node.digest for _, node in prepared.root.walk()]
        seconds = action.limits.timeout + GRACE
        remote = RemoteRun(
            self,
            wire,
            inputs,
            cancel,
            seconds=seconds,
            needs=action.resources,
            awaits_nodes=self._awaits_nodes,
        )

        def read(answer: Answer) -> tuple[ActionResult, str]:
            return self._read(answer, prepared.key, prepared.fresh)

        try:
            result, fault = remote.result(read, remembered=not prepared.fresh)
        except RemoteError as error:
            raise self._failed(action, error) from error
        except NoNodeError:
            self._awaits_nodes = False  # one action has waited for all
            raise
        return Execution(result, fault)

    def survey(self, routing: Routing, cancel: Event) -> bytes:
        """What a worker with the properties ``routing`` offers: see ``worker.offer``.

        Raises RemoteError, InfraError and Interrupted.
        """
        fresh = token_hex(16)
        wire = wire_survey(fresh, routing, self._terms.program)
        remote = RemoteRun(self, wire, [], cancel, seconds=GRACE, awaits_nodes=False)

        def read(answer: Answer) -> tuple[ActionResult, str]:
            return self._read(answer, wire.note, fresh)

        result, _ = remote.result(read, remembered=False)
        if result.stdout is None:
            raise InfraError(Reason.NODE_FAILED, f"a worker of {self._terms.name} sent no answer")
        return self._store.cas.get(result.stdout)

    def _failed(self, action: Action, error: RemoteError) -> InfraError:
        """The same error, which says whose it is; after a server that is away, all have it."""
        if error.reason is Reason.REMOTE_UNAVAILABLE and error.status != "DEADLINE_EXCEEDED":
            self._broken = error
        routing = self._terms.placement.routing(action)
        told = ", ".join(f"{name}={value}" for name, value in sorted((routing or {}).items()))
        where = f"{self._terms.name} ({told})" if told else self._terms.name
        return RemoteError(
            error.reason,
            f"{action.label} was not run by {where}: {error.message}",
            status=error.status,
            hint=error.hint or "'kabuild doctor --remote_executor=URL' says what is wrong",
        )

    def execute(self, wire: WireAction, seconds: float, cancel: Event, *, anew: bool) -> Answer:
        """The server's answer to a wire action whose blobs it has. Raises RemoteError."""
        terms = self._terms
        answer = self.connected().executions.run(
            wire.digest,
            Timeouts(terms.queued, seconds + terms.away, terms.away),
            stopped=cancel.is_set,
            anew=anew,
        )
        if answer.code in _GONE:
            raise RemoteError(Reason.REMOTE_MISSING, answer.message or "a blob is missing")
        if answer.code in _PASSING:
            status = Code(answer.code).name
            what = f"{status}: {answer.message[:_MOST_SAID]}"
            hint = _FULL if _says_full(answer.message) else ""
            raise RemoteError(Reason.REMOTE_UNAVAILABLE, what, status=status, hint=hint)
        if answer.code:
            known: dict[int, str] = {
                Code.CANCELLED: "it was cancelled on the server",
                Code.DEADLINE_EXCEEDED: f"it took longer than {seconds:g} s on the worker",
            }
            what = known.get(answer.code, f"status {answer.code}")
            raise RemoteError(Reason.REMOTE_REFUSED, f"{what}: {answer.message[:_MOST_SAID]}")
        return answer

    def remembered(self, wire: WireAction) -> Answer | None:
        """The server's result of a wire action, if it has one. Raises RemoteError."""
        (found,) = self.connected().results.get_many([wire.digest])
        return Answer(0, "", found, cached=True) if found is not None else None

    def send(self, wire: WireAction, inputs: list[Digest]) -> None:
        """Upload what the server lacks. Raises RemoteError, and StoreError."""
        cas = self._store.cas
        for blob in wire.blobs.values():
            cas.put(blob)
        needed = [digest for digest in (*wire.blobs, *inputs) if digest not in self._there]
        self.connected().blobs.upload(needed, cas)
        self._there.update(needed)

    def forget(self) -> None:
        """Believe no longer that the server has what it had."""
        self._there.clear()

    def connected(self) -> RemoteCache:
        """The server, once it has said that it executes. Raises RemoteError."""
        with self._guard:
            if self._broken is not None:
                raise self._broken
            if self._server is None:
                server = self._connect()
                if not server.capabilities.executes:
                    server.close()
                    raise RemoteError(
                        Reason.REMOTE_REFUSED,
                        "the server executes nothing",
                        hint="it is a cache: name it with --remote_cache",
                    )
                self._server = server
            return self._server

    @property
    def away(self) -> float:
        """Seconds that the server or a node may be away: none before the server answered once."""
        return self._terms.away if self._server else 0.0

    def monotonic(self) -> float:
        """The time, in seconds since some moment."""
        return self._clock.monotonic()

    def pause(self, attempt: int) -> None:
        """Wait a little before another attempt."""
        longest = min(_LONGEST_PAUSE, 0.1 * 2**attempt)
        self._pause(longest * random.uniform(0.5, 1.0))  # noqa: S311 - only spreads clients

    def _read(self, answer: Answer, key: Digest, fresh: str) -> tuple[ActionResult, str]:
        """The result in a worker's answer, checked and stored, and why it was stopped.

        Raises NodeError, LostError, RemoteError and StoreError.
        """
        try:
            found = WorkerResult.parse(answer.result)
        except ValueError as error:
            raise _unreadable(error) from None
        tree = found.trees.get(f"{OUTPUT_ROOT}/{REPORT}")
        if tree is None or found.exit_code not in {REMEMBERED, ENDED}:
            raise NodeError(found.exit_code, self._said(found))
        cas = self._store.cas
        try:
            report = parse_tree(self._unsigned(tree))
        except ValueError as error:
            raise _unreadable(error) from None
        parts = (name for name in (RESULT, FAULT) if name in report.files)
        texts = {name: self._unsigned(report.files[name].digest) for name in parts}
        fault = texts.get(FAULT, b"").decode(errors="replace")
        signed_for = report_key(key, fresh, fault, remembered=found.exit_code == REMEMBERED)
        said = self._terms.trusted.check(signed_for, texts.get(RESULT, b""), self._clock.wall())
        if isinstance(said, Distrust):
            raise DistrustedError(said)
        try:
            trees = trees_named_by(said)
            self._fetch(trees)
            result = decode_foreign(said, cas)
        except ValueError as error:
            raise _unreadable(error) from None
        if result is None:
            raise LostError("a tree of its outputs")
        self._fetch([*blobs_of(result)])
        return result, fault

    def _unsigned(self, digest: Digest) -> bytes:
        """A blob that is read before a signature vouches for it, so a server chose its size.

        Raises LostError and RemoteError.
        """
        if digest.size > MOST_MESSAGE:
            raise _unreadable(ValueError(f"a part of its report has {digest.size} bytes"))
        self._fetch([digest])
        return self._store.cas.get(digest)

    def _fetch(self, digests: list[Digest]) -> None:
        """Get what the store lacks. Raises LostError and RemoteError."""
        lost = self.connected().blobs.fetch(self._store.cas.missing(digests), self._store)
        if lost:
            digest, loss = next(iter(lost.items()))
            raise LostError(f"blob {digest} of its result ({loss.value})")

    def _said(self, found: WorkerResult) -> str:
        """What a worker wrote on stderr."""
        said = found.stderr
        if not said and found.stderr_digest:
            try:
                said = self._unsigned(found.stderr_digest)
            except LostError:
                return "its stderr is lost"
        text = said[-_MOST_SAID:].decode(errors="replace").strip()
        return in_line(text.removeprefix("kabuild: "))


def _says_full(message: str) -> bool:
    """Whether an engine says that its disk is full, as buildbox and libc put it."""
    return "OutOfSpace" in message or "No space left on device" in message


def _unreadable(error: Exception) -> RemoteError:
    return RemoteError(Reason.REMOTE_REFUSED, f"a worker's answer cannot be read: {error}")
