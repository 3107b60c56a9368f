"""The way out of an agent's network: listed hosts and nothing else."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import proxy
import pytest
from proxy import Outage, Outages


@pytest.fixture
def far() -> Iterator[int]:
    """The port of a server that answers what it hears in capitals."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    while data := connection.recv(100):
                        connection.sendall(data.upper())

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


class Running:
    """A proxy that was started, as an agent and its session see it."""

    def __init__(self, hosts: list[str]) -> None:
        self._told, telling = os.pipe()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self._port = listening.getsockname()[1]
            self._pid = proxy.start(listening, hosts, telling)
        os.close(telling)

    def ask(self, head: str, body: bytes = b"") -> bytes:
        """What an agent gets for what it sends."""
        with socket.create_connection(("127.0.0.1", self._port), 10) as near:
            near.sendall(f"{head}\r\n\r\n".encode() + body)
            near.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: near.recv(1000), b""))

    def end(self) -> list[Outage]:
        """What the session was told."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        with open(self._told, "rb") as told:
            return list(Outages().feed(told.read()))


def _ask(hosts: list[str], head: str, body: bytes = b"") -> tuple[bytes, list[Outage]]:
    running = Running(hosts)
    try:
        answer = running.ask(head, body)
    finally:
        outages = running.end()
    return answer, outages


@pytest.fixture
def closed() -> str:
    """HOST:PORT where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "_PAUSE_SECONDS", 0.0)


def test_a_listed_host_is_reached(far: int) -> None:
    target = f"127.0.0.1:{far}"

    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}"

    answer, outages = _ask([target], head, b"hello")

    assert answer == b"HTTP/1.1 200 Connected\r\n\r\nHELLO"
    assert outages == []


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("CONNECT 127.0.0.1:{far} HTTP/1.1", b"403"),
        ("CONNECT localhost:{far} HTTP/1.1", b"403"),
        ("GET http://listed.invalid:1/ HTTP/1.1", b"405"),
        ("nonsense", b"405"),
        ("CONNECT " + "x" * 20000, b"405"),
    ],
)
def test_anything_else_is_refused(far: int, head: str, status: bytes) -> None:
    answer, outages = _ask(["listed.invalid:1"], head.replace("{far}", str(far)))

    assert answer.split()[1:2] == [status]
    assert outages == [], "nobody asked for what is listed"


def test_a_host_that_cannot_be_reached_is_told_to_agent_and_session(closed: str) -> None:
    answer, (outage,) = _ask([closed], f"CONNECT {closed} HTTP/1.1")

    assert str(outage) == f"this machine cannot reach {closed}: Connection refused"
    assert not outage.ever
    assert answer == f"HTTP/1.1 502 {outage}\r\n\r\n".encode()


def test_a_name_that_nobody_knows_is_told() -> None:
    _, (outage,) = _ask(["Listed.invalid:1"], "CONNECT listed.INVALID:1 HTTP/1.1")

    assert (outage.host, outage.ever) == ("listed.INVALID:1", False)


@pytest.mark.parametrize(("failures", "status"), [(2, b"200"), (3, b"502")])
def test_what_was_never_reached_is_tried_again(
    far: int, monkeypatch: pytest.MonkeyPatch, failures: int, status: bytes
) -> None:
    target = f"127.0.0.1:{far}"
    connect = socket.create_connection
    attempts: list[int] = []

    def fail(*arguments: Any) -> socket.socket:
        attempts.append(1)
        if len(attempts) <= failures:
            raise OSError("not now")
        return connect(*arguments)

    running = _with_connect(monkeypatch, fail, [target])
    answer = running.ask(f"CONNECT {target} HTTP/1.1")

    assert answer.split()[1] == status
    assert [outage.ever for outage in running.end()] == ([] if status == b"200" else [False])


def test_what_was_reached_once_is_not_waited_for(far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    target = f"127.0.0.1:{far}"
    connect = socket.create_connection
    attempts: list[int] = []

    def work_once(*arguments: Any) -> socket.socket:
        attempts.append(1)
        if len(attempts) == 1:
            return connect(*arguments)
        raise OSError(f"attempt {len(attempts)}")

    running = _with_connect(monkeypatch, work_once, [target])
    answers = [running.ask(f"CONNECT {target} HTTP/1.1") for _ in range(2)]

    assert [answer.split()[1] for answer in answers] == [b"200", b"502"]
    (outage,) = running.end()
    assert (outage.why, outage.ever) == ("attempt 2", True)


def _with_connect(
    monkeypatch: pytest.MonkeyPatch, connect: Callable[..., socket.socket], hosts: list[str]
) -> Running:
    """A proxy that connects by ``connect``."""
    with monkeypatch.context() as patched:
        patched.setattr(socket, "create_connection", connect)
        return Running(hosts)


def test_news_may_arrive_in_pieces() -> None:
    outages = Outages()
    line = b'{"host": "a:1", "why": "no", "ever": false}\n'

    assert list(outages.feed(line[:7])) == []
    assert list(outages.feed(line[7:] + line)) == [Outage("a:1", "no", ever=False)] * 2
