"""Ends calls that are not wanted any more: the thread that waits for one cannot look up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from kabuild.base import threads

_POLL = 0.2
"""Seconds between looks at whether calls are still wanted."""


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
