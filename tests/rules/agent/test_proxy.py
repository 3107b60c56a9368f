"""The way out of an agent's network: listed hosts and nothing else."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator

import proxy
import pytest


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


def _ask(hosts: list[str], head: bytes, body: bytes = b"") -> bytes:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    pid = proxy.start(listening, hosts)
    listening.close()
    try:
        with socket.create_connection(("127.0.0.1", port), 10) as near:
            near.sendall(head + b"\r\n\r\n" + body)
            near.shutdown(socket.SHUT_WR)
            answer = b""
            while part := near.recv(1000):
                answer += part
            return answer
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_listed_host_is_reached(far: int) -> None:
    target = f"127.0.0.1:{far}"

    answer = _ask([target], f"CONNECT {target} HTTP/1.1\r\nHost: {target}".encode(), b"hello")

    assert answer == b"HTTP/1.1 200 Connected\r\n\r\nHELLO"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("CONNECT 127.0.0.1:{far} HTTP/1.1", b"403"),
        ("CONNECT localhost:{far} HTTP/1.1", b"403"),
        ("GET http://listed.invalid:1/ HTTP/1.1", b"405"),
        ("CONNECT listed.invalid:1 HTTP/1.1", b"502"),
        ("nonsense", b"405"),
        ("CONNECT " + "x" * 20000, b"405"),
    ],
)
def test_anything_else_is_refused(far: int, head: str, status: bytes) -> None:
    answer = _ask(["listed.invalid:1"], head.replace("{far}", str(far)).encode())

    assert answer.split()[1:2] == [status]
