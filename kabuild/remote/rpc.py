"""Calls to one server: deadlines, retries, and many at once. Messages are bytes.

A call that finds the server away is tried again, a little later each time; so is one that was
refused because there were too many at once, and then fewer are sent. A deadline is final: a server
that is slow costs one timeout and no more. A call that is not wanted any more is ended by another
thread, since the one that waits for it cannot look up.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import grpc

from kabuild.base import threads
from kabuild.base.canonical import message_field, text_field
from kabuild.base.errors import Reason, RemoteError
from kabuild.base.version import __version__
from kabuild.remote.endpoint import Endpoint
from kabuild.remote.wave import Wave

T = TypeVar("T")

WINDOW = 100
"""Calls on their way at once, as long as the server takes so many; Bazel's on one connection."""

LARGEST_MESSAGE = 16 << 20
"""Bytes of one answer."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_POLL = 0.2
"""Seconds between looks at whether the build was stopped, and whether calls are still wanted."""

_METADATA = "build.bazel.remote.execution.v2.requestmetadata-bin"
_PASSING = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED", "INTERNAL", "UNKNOWN"})
_AWAY = _PASSING | {"DEADLINE_EXCEEDED", "CANCELLED"}
_OPTIONS = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.enable_http_proxy", 0),
)


class Rpc:
    """One connection to one server. May be used from several threads."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        stopped: Callable[[], bool] = lambda: False,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``stopped`` says whether the user ended the build: calls then end, too.

        Raises RemoteError(REMOTE_REFUSED) for certificates that cannot be read.
        """
        self.endpoint = endpoint
        self._stopped = stopped
        self._pause = pause
        self._window = WINDOW
        self._channel = _channel(endpoint)
        tool = text_field(1, "kabuild") + text_field(2, __version__)
        about = message_field(1, tool) + text_field(3, str(uuid4()))
        self._metadata = ((_METADATA, about), *endpoint.headers)
        self._stubs: dict[str, Any] = {}
        self._guard = threading.Lock()
        self._watch = Watch()

    def close(self) -> None:
        """End the connection, and all calls on it."""
        self._watch.close()
        self._channel.close()

    def unary(self, method: str, request: bytes, *, timeout: float | None = None) -> bytes:
        """The answer to one request. Raises RemoteError."""

        def call() -> bytes:
            stub = self._stub(method, "unary_unary")
            return self._wait(
                stub.future(request, timeout=self._seconds(timeout), metadata=self._metadata)
            )

        return self.again(method, call)

    def wave(self, method: str, requests: Sequence[bytes]) -> list[bytes | None]:
        """The answers to many requests, in their order; None for what the server lacks.

        Raises RemoteError as soon as one has another error that stays.
        """
        stub = self._stub(method, "unary_unary")
        start = partial(stub.future, timeout=self._seconds(None), metadata=self._metadata)
        wave = Wave(requests, start, lambda: self._window)
        attempts: Counter[int] = Counter()
        try:
            wave.fill()
            while not wave.is_complete:
                news = self._next(wave.news)
                if isinstance(news, Exception):
                    raise news
                if news:
                    index, error = news
                    self._give_way(self._error(method, error), attempts[index])
                    attempts[index] += 1
                    wave.again(index)
                wave.fill()
        finally:
            wave.close()
        return wave.answers

    def write(self, method: str, requests: Callable[[], Iterator[bytes]], seconds: float) -> bytes:
        """The answer to a stream of requests, which takes at most ``seconds``.

        Raises RemoteError, and whatever ``requests`` raises.
        """
        stub = self._stub(method, "stream_unary")
        problems: list[Exception] = []

        def guarded() -> Iterator[bytes]:
            try:
                yield from requests()
            except Exception as problem:  # gRPC would only log it
                problems.append(problem)
                raise

        def call() -> bytes:
            future = stub.future(guarded(), timeout=self._seconds(seconds), metadata=self._metadata)
            try:
                return self._wait(future)
            except grpc.RpcError:
                if problems:
                    raise problems[0] from None
                raise

        return self.again(method, call)

    def read(self, method: str, request: bytes, seconds: float) -> Iterator[bytes]:
        """The messages of one stream, tried once: the reader begins again. Raises RemoteError."""
        call = self._stub(method, "unary_stream")(
            request, timeout=self._seconds(seconds), metadata=self._metadata
        )
        try:
            for message in call:
                self._check_stopped()
                yield message
        except grpc.RpcError as error:
            raise self._error(method, error) from None
        finally:
            call.cancel()

    def follow(self, method: str, request: bytes, unwanted: Callable[[], bool]) -> Iterator[bytes]:
        """The messages of one stream, which ends when it ends, or once it is ``unwanted``.

        Raises RemoteError, also for a stream that was not wanted any more.
        """
        call = self._stub(method, "unary_stream")(request, metadata=self._metadata)
        try:
            with self._watch.over(call, unwanted):
                yield from call
        except grpc.RpcError as error:
            raise self._error(method, error) from None
        finally:
            call.cancel()

    def once(self, method: str, request: bytes, seconds: float) -> None:
        """One request, tried once, even if the build was stopped. Raises RemoteError."""
        try:
            self._stub(method, "unary_unary")(request, timeout=seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._error(method, error) from None

    def again(self, method: str, call: Callable[[], T]) -> T:
        """What ``call`` returns, tried again while the server is away. Raises RemoteError."""
        attempt = 0
        while True:
            try:
                return call()
            except (grpc.RpcError, grpc.FutureCancelledError) as error:
                failure = self._error(method, error)
            except RemoteError as error:
                failure = error
            self._give_way(failure, attempt)
            attempt += 1

    def _give_way(self, failure: RemoteError, attempts: int) -> None:
        """Wait a little before another attempt. Raises ``failure`` where none is left."""
        self._check_stopped()
        if failure.status not in _PASSING or attempts >= self.endpoint.retries:
            raise failure
        if failure.status == "RESOURCE_EXHAUSTED":
            self._window = max(1, self._window // 2)
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempts)
        self._pause(longest * random.uniform(0.5, 1.0))  # noqa: S311 - only spreads clients

    def _wait(self, future: Any) -> bytes:
        while True:
            try:
                answer: bytes = future.result(timeout=_POLL)
            except grpc.FutureTimeoutError:
                if self._stopped():
                    future.cancel()
                self._check_stopped()
            else:
                return answer

    def _next(self, news: queue.SimpleQueue[T]) -> T:
        while True:
            self._check_stopped()
            try:
                return news.get(timeout=_POLL)
            except queue.Empty:
                continue

    def _check_stopped(self) -> None:
        if self._stopped():
            raise RemoteError(Reason.INTERRUPTED, "the build was stopped")

    def _seconds(self, wanted: float | None) -> float:
        return self.endpoint.timeout if wanted is None else wanted

    def _stub(self, method: str, kind: str) -> Any:
        with self._guard:
            if method not in self._stubs:
                self._stubs[method] = getattr(self._channel, kind)(method)
            return self._stubs[method]

    def _error(self, method: str, error: Any) -> RemoteError:
        """What gRPC says, in words of ours; a future that was cancelled has no status."""
        status = error.code().name if isinstance(error, grpc.RpcError) else "CANCELLED"
        said = str(error.details() or "").strip() if isinstance(error, grpc.RpcError) else ""
        call = method.rpartition("/")[2]
        if status == "NOT_FOUND":
            return RemoteError(Reason.REMOTE_MISSING, said or "not found", status=status)
        if status == "DEADLINE_EXCEEDED":
            said = f"no answer in {self.endpoint.timeout:g} s"
        away = status in _AWAY
        return RemoteError(
            Reason.REMOTE_UNAVAILABLE if away else Reason.REMOTE_REFUSED,
            f"{call}: {status}: {said[:300]}" if said else f"{call}: {status}",
            status=status,
        )


class Cancellable(Protocol):
    """A call of gRPC's."""

    def cancel(self) -> object:
        """End it: who waits for it gets an error."""


class Watch:
    """Looks after any number of calls, with one thread; used from many."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._calls: dict[int, tuple[Cancellable, Callable[[], bool]]] = {}
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def close(self) -> None:
        """Look no more."""
        self._closed.set()

    @contextmanager
    def over(self, call: Cancellable, unwanted: Callable[[], bool]) -> Iterator[None]:
        """Cancel ``call`` during the body, once ``unwanted`` says so."""
        with self._guard:
            self._calls[id(call)] = call, unwanted
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._look, name="kabuild-watch", daemon=True
                )
                threads.start(self._thread)
        try:
            yield
        finally:
            with self._guard:
                del self._calls[id(call)]

    def _look(self) -> None:
        while not self._closed.wait(_POLL):
            with self._guard:
                calls = [*self._calls.values()]
            for call, unwanted in calls:
                if unwanted():
                    call.cancel()


def _channel(endpoint: Endpoint) -> Any:
    if not endpoint.secure:
        return grpc.insecure_channel(endpoint.target, _OPTIONS)
    credentials = grpc.ssl_channel_credentials(endpoint.roots, endpoint.key, endpoint.certificate)
    return grpc.secure_channel(endpoint.target, credentials, _OPTIONS)
