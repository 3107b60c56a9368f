"""Executions on a server: Execute, WaitExecution and CancelOperation as one loop.

A connection may break at any time, and a server may be killed and started again: the loop asks
again for what it waits for. Equal actions are merged or remembered by the server, so nothing is
lost.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress

from kabuild.base.errors import Interrupted, Reason, RemoteError
from kabuild.model.digest import Digest
from kabuild.remote.execution_messages import (
    CANCEL,
    EXECUTE,
    WAIT,
    Answer,
    Operation,
    Stage,
    cancel,
    execute,
    wait,
)
from kabuild.remote.rpc import Rpc
from kabuild.remote.timeouts import Timeouts

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_CANCEL_SECONDS = 2.0
_PASSING = frozenset(
    {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED", "INTERNAL", "UNKNOWN"}
    | {"CANCELLED", "DEADLINE_EXCEEDED"}
)


class RemoteExecutions:
    """Runs actions whose blobs the server has. Used from many threads."""

    def __init__(
        self,
        rpc: Rpc,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rpc = rpc
        self._clock = clock
        self._pause = pause

    def run(
        self, action: Digest, timeouts: Timeouts, *, stopped: Callable[[], bool], anew: bool = False
    ) -> Answer:
        """The server's answer to ``action``; ``anew`` skips what it remembers.

        Raises Interrupted once ``stopped`` says so, and RemoteError: REMOTE_UNAVAILABLE for a
        server that is away for too long, with the status DEADLINE_EXCEEDED for an action that takes
        too long. The operation is cancelled then.
        """
        one = _One(self._rpc, action, timeouts, stopped, self._clock, anew=anew)
        attempt = 0
        while True:
            failure = one.follow()
            if one.answer is not None:
                return one.answer
            if one.heard:
                attempt, one.heard = 0, False
            one.check(failure)
            longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
            self._pause(longest * random.uniform(0.5, 1.0))  # noqa: S311 - only spreads clients
            attempt = min(attempt + 1, 10)


class _One:
    """One execution: what is known of it, and since when."""

    def __init__(
        self,
        rpc: Rpc,
        action: Digest,
        timeouts: Timeouts,
        stopped: Callable[[], bool],
        clock: Callable[[], float],
        *,
        anew: bool,
    ) -> None:
        self.answer: Answer | None = None
        self.heard = False
        self._rpc = rpc
        self._action = action
        self._timeouts = timeouts
        self._stopped = stopped
        self._clock = clock
        self._anew = anew
        self._name = ""
        self._stage = int(Stage.UNKNOWN)
        self._since = clock()
        self._away_since: float | None = None

    def follow(self) -> RemoteError:
        """Listen to one stream until it ends; the error if it brought no answer."""
        rpc, waits = self._rpc, bool(self._name)
        if waits:
            method, request = WAIT, wait(self._name)
        else:
            instance = rpc.endpoint.instance
            method, request = EXECUTE, execute(instance, self._action, anew=self._anew)
        try:
            for message in rpc.follow(method, request, self._is_unwanted):
                self._hear(message)
                if self.answer is not None:
                    break
        except RemoteError as error:
            gone = error.reason is Reason.REMOTE_MISSING or error.status == "UNIMPLEMENTED"
            if waits and gone:  # restarted, or it cannot: ask for the action again
                self._name = ""
                return RemoteError(Reason.REMOTE_UNAVAILABLE, error.message, status="ABORTED")
            return error
        return RemoteError(
            Reason.REMOTE_UNAVAILABLE, "the server ended a stream early", status="UNAVAILABLE"
        )

    def check(self, failure: RemoteError) -> None:
        """Raise what ends the execution after a stream failed; else it is tried again."""
        if self._stopped():
            self._cancel()
            raise Interrupted(Reason.INTERRUPTED, "interrupted")
        if why := self._overdue():
            self._cancel()
            raise RemoteError(Reason.REMOTE_UNAVAILABLE, why, status="DEADLINE_EXCEEDED")
        if failure.status not in _PASSING:
            raise failure
        now = self._clock()
        if self._away_since is None:
            self._away_since = now
        if now - self._away_since > self._timeouts.away:
            raise failure

    def _hear(self, message: bytes) -> None:
        try:
            said = Operation.parse(message)
        except ValueError as error:
            what = f"the server's answer cannot be read: {error}"
            raise RemoteError(Reason.REMOTE_REFUSED, what) from None
        now = self._clock()
        self.heard, self._away_since = True, None
        self._name = said.name or self._name
        if said.stage != self._stage:
            self._stage, self._since = said.stage, now
        self.answer = said.answer

    def _is_unwanted(self) -> bool:
        return self._stopped() or bool(self._overdue())

    def _overdue(self) -> str:
        """Why it takes too long; empty if it does not."""
        spent, timeouts = self._clock() - self._since, self._timeouts
        if self._stage == Stage.QUEUED:
            why = f"no worker took the action in {timeouts.queued:g} s"
            return why if spent > timeouts.queued else ""
        why = f"the server gave no result in {timeouts.running:g} s"
        return why if spent > timeouts.running else ""

    def _cancel(self) -> None:
        """Tell the server, if it listens."""
        if self._name:
            with suppress(RemoteError):
                self._rpc.once(CANCEL, cancel(self._name), _CANCEL_SECONDS)
