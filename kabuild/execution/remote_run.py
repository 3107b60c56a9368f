"""One wire action: sent, run and read, again and again where that may help."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Protocol, TypeVar

from kabuild.base.errors import InfraError, Interrupted, Reason, RemoteError
from kabuild.execution.wire import WireAction
from kabuild.model.action import Resources
from kabuild.model.digest import Digest
from kabuild.remote.execution_messages import Answer
from kabuild.remote.signing import Distrust

T = TypeVar("T")

_NONE = Resources()

MOST_ROUNDS = 3
"""How often an action is tried whose blobs the server loses, or whose workers fail."""

NO_NODE = 69
NOT_BEGUN = range(NO_NODE, 75)
"""Exit codes of workers that say that the action did not begin; see ``kabuild.worker``."""


class Server(Protocol):
    """What a run needs of a fleet."""

    @property
    def away(self) -> float:
        """Seconds that the server may be away, or the node of a worker."""
        ...

    def remembered(self, wire: WireAction) -> Answer | None:
        """The server's result of a wire action, if it has one. Raises RemoteError."""
        ...

    def send(self, wire: WireAction, inputs: list[Digest]) -> None:
        """Upload what the server lacks. Raises RemoteError, and StoreError."""
        ...

    def execute(self, wire: WireAction, seconds: float, cancel: Event, *, anew: bool) -> Answer:
        """The server's answer to a wire action whose blobs it has. Raises RemoteError."""
        ...

    def forget(self) -> None:
        """Believe no longer that the server has what it had."""
        ...

    def monotonic(self) -> float:
        """The time, in seconds since some moment."""
        ...

    def pause(self, attempt: int) -> None:
        """Wait a little before another attempt."""
        ...


class NodeError(Exception):
    """A worker failed, with an exit code and a text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text or f"exit code {code}, without a message"


class NoNodeError(InfraError):
    """Workers have no node, and have had none for as long as a server may be away."""


class LostError(Exception):
    """A blob of a result is not on the server, or damaged there."""


class DistrustedError(Exception):
    """A result does not count."""

    def __init__(self, why: Distrust) -> None:
        super().__init__(why)
        self.why = why


class RemoteRun:
    """One wire action: sent, run and read, again and again where that may help."""

    def __init__(
        self,
        fleet: Server,
        wire: WireAction,
        inputs: list[Digest],
        cancel: Event,
        *,
        seconds: float,
        needs: Resources = _NONE,
        awaits_nodes: bool = True,
    ) -> None:
        """``seconds`` and ``needs`` are those of the action that a worker runs.

        ``awaits_nodes``: whether a node that does not serve may come back, as a server may.
        """
        self._fleet = fleet
        self._wire = wire
        self._inputs = inputs
        self._seconds = seconds
        self._may_repeat = not (needs.lease or needs.timed)
        self._awaits_nodes = awaits_nodes
        self._cancel = cancel
        self._rounds = 0
        self._away_since: float | None = None
        self._attempt = 0

    def result(self, read: Callable[[Answer], T], *, remembered: bool) -> T:
        """The answer, as ``read`` parses it; with ``remembered``, the server's cached one suffices.

        Raises RemoteError, InfraError, StoreError and Interrupted.
        """
        anew = not remembered
        while True:
            cached = True
            if self._cancel.is_set():
                raise Interrupted(Reason.INTERRUPTED, "interrupted")
            try:
                answer = None if anew else self._fleet.remembered(self._wire)
                if answer is None:
                    self._fleet.send(self._wire, self._inputs)
                    answer = self._fleet.execute(self._wire, self._seconds, self._cancel, anew=anew)
                    cached = answer.cached
                return read(answer)
            except RemoteError as error:
                self._consider(error)
            except NodeError as error:
                if not (cached and not anew):  # some servers remember failures, too
                    self._go_elsewhere(error)
                anew = True
            except LostError as error:
                anew = True
                self._again(RemoteError(Reason.REMOTE_MISSING, f"the server lost {error}"))
            except DistrustedError as error:
                if anew or not cached:
                    raise _distrusted(error.why) from None
                anew = True

    def _consider(self, error: RemoteError) -> None:
        """Prepare for another attempt. Raises what makes it vain."""
        if self._cancel.is_set() or error.reason is Reason.INTERRUPTED:
            raise Interrupted(Reason.INTERRUPTED, "interrupted") from None
        if error.reason is Reason.REMOTE_MISSING or error.status == "FAILED_PRECONDITION":
            self._fleet.forget()
            self._again(error)
            return
        final = error.status == "DEADLINE_EXCEEDED"
        if error.reason is not Reason.REMOTE_UNAVAILABLE or final:
            raise error
        self._await(error)

    def _await(self, failure: InfraError) -> None:
        """Wait a little for what is away. Raises ``failure`` if that has lasted too long."""
        now = self._fleet.monotonic()
        if self._away_since is None:
            self._away_since = now
        if now - self._away_since > self._fleet.away:
            raise failure
        self._fleet.pause(self._attempt)
        self._attempt += 1

    def _go_elsewhere(self, error: NodeError) -> None:
        """Try another worker: not with what had begun on a device, which it may have broken."""
        hint = "start 'kabuild worker serve' there" if error.code == NO_NODE else ""
        what = f"a worker of the fleet failed: {error.text}"
        kind = NoNodeError if error.code == NO_NODE else InfraError
        failure = kind(Reason.NODE_FAILED, what, hint=hint)
        if error.code == NO_NODE and self._awaits_nodes:
            self._await(failure)
            return
        self._away_since, self._attempt = None, 0
        if error.code not in NOT_BEGUN and not self._may_repeat:
            raise failure
        self._again(failure)
        self._fleet.pause(self._rounds)

    def _again(self, failure: InfraError) -> None:
        self._rounds += 1
        if self._rounds >= MOST_ROUNDS:
            raise failure


def _distrusted(why: Distrust) -> RemoteError:
    hint = {
        Distrust.UNSIGNED: "'kabuild worker serve' signs with --signing_key=FILE",
        Distrust.UNKNOWN: "add the node's public key to the file of [remote] trusted_keys",
        Distrust.EXPIRED: "renew it in the file of [remote] trusted_keys",
    }.get(why, "the server, or someone with write access to it, changes results")
    what = f"a worker's result does not count: it is {why.value}"
    return RemoteError(Reason.REMOTE_REFUSED, what, hint=hint)
