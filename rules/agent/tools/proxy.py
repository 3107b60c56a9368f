"""The proxy of the network policy ``proxy``: HTTP CONNECT, to listed hosts only.

The listening socket is in the agent's own network; this process is in that of the machine. So the
agent reaches only listed hosts. The agent encrypts the traffic; it is not inspected.

The agent needs the listed hosts. A host that was never reached is tried a few times; if that fails,
the session is told, since the agent would only see the proxy fail.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import NoReturn

_HEAD_BYTES = 16 << 10
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_ATTEMPTS = 3
_ATTEMPTS_SECONDS = 10.0
_PAUSE_SECONDS = 1.0
_READ_BYTES = 1 << 16
_MOST_CONNECTIONS = 64
_MOST_DRAINED = 1 << 20


@dataclass(frozen=True)
class Outage:
    """An unreachable listed host, and why; ``ever``: it was reached earlier in this session."""

    host: str
    why: str
    ever: bool

    def __str__(self) -> str:
        return f"this machine cannot reach {self.host}: {self.why}"


class Outages:
    """Reads the proxy's messages about outages from its pipe."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Outage]:
        """The outages whose messages are complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield Outage(**json.loads(line))


def start(listening: socket.socket, hosts: Collection[str], news: int) -> int:
    """Fork the proxy, which connects to ``hosts`` (HOST:PORT each); its pid.

    ``news`` is the end of a pipe to which it writes ``Outages``.
    """
    pid = os.fork()
    if pid == 0:
        try:
            Proxy(hosts, partial(_tell, news)).serve(listening)
        finally:
            os._exit(1)
    return pid


def _tell(news: int, outage: Outage) -> None:
    os.write(news, json.dumps(asdict(outage)).encode() + b"\n")


class Proxy:
    """Connects to listed hosts, and reports unreachable ones."""

    def __init__(self, hosts: Collection[str], tell: Callable[[Outage], None]) -> None:
        self._hosts = {host.lower() for host in hosts}
        self._tell = tell
        self._reached: set[str] = set()

    def serve(self, listening: socket.socket) -> NoReturn:
        """Serve for ever, each connection in a thread."""
        free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        while True:
            connection, _ = listening.accept()
            free.acquire()

            def tunnel(near: socket.socket = connection) -> None:
                with near, contextlib.suppress(OSError):
                    self._tunnel(near)
                free.release()

            threading.Thread(target=tunnel, daemon=True).start()

    def _tunnel(self, near: socket.socket) -> None:
        near.settimeout(_HEAD_SECONDS)
        target = _target(near)
        if target is None:
            _refuse(near, "405 Only CONNECT")
            return
        if target.lower() not in self._hosts:
            _refuse(near, "403 Not a listed host")
            return
        try:
            far = self._connect(target.lower())
        except OSError as error:
            outage = Outage(target, error.strerror or str(error), target.lower() in self._reached)
            self._tell(outage)
            _refuse(near, f"502 {outage}")
            return
        with far:
            near.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            for one in (near, far):
                one.settimeout(None)
            _relay(near, far)

    def _connect(self, target: str) -> socket.socket:
        """A connection, with several attempts for a host that was never reached. Raises OSError."""
        host, _, port = target.rpartition(":")
        end = time.monotonic() + _ATTEMPTS_SECONDS
        left = _ATTEMPTS
        while True:
            try:
                far = socket.create_connection((host, int(port)), _CONNECT_SECONDS)
            except OSError:
                left -= 1
                if not left or target in self._reached or time.monotonic() > end:
                    raise
            else:
                self._reached.add(target)
                return far
            time.sleep(_PAUSE_SECONDS)


def _target(near: socket.socket) -> str | None:
    """HOST:PORT of a CONNECT request, whose head is read to its end; None for anything else."""
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        part = near.recv(1)  # leaves the tunnel's bytes unread
        head += part
        if not part or len(head) > _HEAD_BYTES:
            return None
    words = head.split(b"\r\n")[0].decode(errors="replace").split(" ")
    return words[1] if len(words) == 3 and words[0] == "CONNECT" else None


def _refuse(near: socket.socket, status: str) -> None:
    """Answer, and read pending data first: closing earlier would discard the answer."""
    near.sendall(f"HTTP/1.1 {status}\r\n\r\n".encode())
    near.shutdown(socket.SHUT_WR)
    for _ in range(_MOST_DRAINED // _READ_BYTES):
        if not near.recv(_READ_BYTES):
            return


def _relay(near: socket.socket, far: socket.socket) -> None:
    """Relay bytes both ways until one side closes."""
    poll = select.poll()
    others = {near.fileno(): (near, far), far.fileno(): (far, near)}
    for fd in others:
        poll.register(fd, select.POLLIN)
    while others:
        for fd, _ in poll.poll():
            source, target = others[fd]
            data = source.recv(_READ_BYTES)
            if data:
                target.sendall(data)
                continue
            poll.unregister(fd)
            del others[fd]
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)
