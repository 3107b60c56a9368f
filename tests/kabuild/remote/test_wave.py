"""Many calls at once, made by the threads that hear of the answers."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from tests.testkit.fleet import require_fleet

require_fleet()

import grpc

from kabuild.remote.wave import Wave


class Away(grpc.RpcError):  # type: ignore[misc]
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


class Calls:
    """Calls that are answered when the test says so, by another thread, as gRPC does."""

    def __init__(self) -> None:
        self.made: list[Future[bytes]] = []
        self.refuse: Exception | None = None

    def __call__(self, request: bytes) -> Future[bytes]:
        if self.refuse:
            raise self.refuse
        self.made.append(Future())
        return self.made[-1]

    def answer(self, number: int, answer: bytes | Exception) -> None:
        future = self.made[number]
        end = future.set_exception if isinstance(answer, Exception) else future.set_result
        thread = threading.Thread(target=end, args=(answer,))
        thread.start()
        thread.join()


def started(calls: Calls, count: int, window: int) -> Wave:
    wave = Wave([bytes([number]) for number in range(count)], calls, lambda: window)
    wave.fill()
    return wave


def test_who_hears_of_an_answer_makes_the_next_call() -> None:
    calls = Calls()
    wave = started(calls, count=5, window=2)

    for number in range(5):
        assert len(calls.made) == min(number + 2, 5)
        calls.answer(number, bytes([number]))

    assert wave.is_complete
    assert wave.answers == [bytes([number]) for number in range(5)]
    assert wave.news.get_nowait() is None, "who waits is told of the end"


def test_after_a_failure_no_call_is_made_before_it_is_dealt_with() -> None:
    calls = Calls()
    wave = started(calls, count=4, window=2)

    calls.answer(0, failure := Away())
    calls.answer(1, b"one")
    assert len(calls.made) == 2
    assert wave.news.get_nowait() == (0, failure)
    wave.again(0)
    wave.fill()

    for number in (2, 3, 4):
        calls.answer(number, b"later")
    assert wave.is_complete
    assert wave.answers == [b"later", b"one", b"later", b"later"]


def test_what_goes_wrong_in_a_thread_of_grpc_is_told() -> None:
    """It would be logged otherwise, and who waits would wait for ever."""
    calls = Calls()
    wave = started(calls, count=2, window=1)

    calls.refuse = ValueError("closed")
    calls.answer(0, b"zero")

    news = [wave.news.get_nowait() for _ in range(2)]
    assert calls.refuse in news


def test_a_call_that_ends_at_once_leaves_the_next_to_who_waits() -> None:
    """Or a thousand of them would nest."""

    def at_once(request: bytes) -> Future[bytes]:
        future: Future[bytes] = Future()
        future.set_result(request)
        return future

    wave = Wave([b"x"] * 3000, at_once, lambda: 2)
    while not wave.is_complete:
        wave.fill()

    assert wave.answers == [b"x"] * 3000


def test_nothing_is_called_after_the_end() -> None:
    calls = Calls()
    wave = started(calls, count=3, window=1)

    wave.close()

    assert calls.made[0].cancelled()
    with pytest.raises(IndexError):
        calls.made[1]
