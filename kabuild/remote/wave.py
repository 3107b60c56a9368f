"""Many calls at once, in as few switches between threads as possible.

The thread of gRPC that hears of an answer makes the next call itself. To hand each answer to
another thread, which then makes the next call, costs four times as much: both threads want the
interpreter, and a call costs less than the switch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

import grpc

_NOT_FOUND = grpc.StatusCode.NOT_FOUND


class Wave:
    """Calls for ``requests``, of which ``window()`` are on their way at once.

    ``answers`` has what came, in the order of the requests; None for what the server lacks.
    ``start`` makes one call, and returns its future.
    """

    def __init__(
        self,
        requests: Sequence[bytes],
        start: Callable[[bytes], Any],
        window: Callable[[], int],
    ) -> None:
        self.answers: list[bytes | None] = [None] * len(requests)
        self.news: SimpleQueue[tuple[int, Exception] | Exception | None] = SimpleQueue()
        """For the thread that waits: a call that failed, by its index; None when no call is on its
        way; what else went wrong in a thread of gRPC."""
        self._requests = requests
        self._start = start
        self._window = window
        self._waiting = deque(range(len(requests)))
        self._flying: dict[int, Any] = {}
        self._failed = 0
        self._is_over = False
        self._guard = threading.Lock()
        self._home = threading.get_ident()

    @property
    def is_complete(self) -> bool:
        """Whether every call has its answer."""
        with self._guard:
            return not self._waiting and not self._flying

    def fill(self) -> None:
        """Make as many calls as may be on their way."""
        for _ in range(self._window()):
            if not self._launch():
                return

    def again(self, index: int) -> None:
        """Put a call that failed behind those that wait."""
        with self._guard:
            del self._flying[index]
            self._waiting.append(index)
            self._failed -= 1

    def close(self) -> None:
        """Cancel what is on its way."""
        with self._guard:
            self._is_over = True
            flying = [future for future in self._flying.values() if future]
        for future in flying:
            future.cancel()

    def _launch(self) -> bool:
        """Make the next call, unless too many are on their way, or one has failed."""
        with self._guard:
            full = len(self._flying) >= self._window()
            if self._is_over or self._failed or full or not self._waiting:
                return False
            index = self._waiting.popleft()
            self._flying[index] = None
        future = self._start(self._requests[index])
        with self._guard:
            self._flying[index] = future
            unwanted = self._is_over
        if unwanted:
            future.cancel()
        future.add_done_callback(partial(self._done, index))
        return True

    def _done(self, index: int, future: Any) -> None:
        """Called by a thread of gRPC; by our own for a call that ended before it was asked."""
        try:
            is_settled = self._settle(index, future)
            if is_settled and threading.get_ident() != self._home:
                self._launch()
        except Exception as problem:  # noqa: BLE001 - gRPC would only log it
            self.news.put(problem)

    def _settle(self, index: int, future: Any) -> bool:
        """Note the answer of a call; False if it failed, which the thread that waits is told."""
        try:
            answer = future.result()
        except (grpc.RpcError, grpc.FutureCancelledError) as error:
            if not isinstance(error, grpc.RpcError) or error.code() is not _NOT_FOUND:
                with self._guard:
                    self._failed += 1
                self.news.put((index, error))
                return False
            answer = None
        with self._guard:
            self.answers[index] = answer
            del self._flying[index]
            is_idle = not self._flying
        if is_idle:
            self.news.put(None)
        return True
