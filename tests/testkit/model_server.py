"""A model that answers from a script, over the wire protocols of Anthropic and OpenAI.

For tests of agents with their real command lines, or of a search over an endpoint: no network, no
model, the same answers every time. Self-contained, so that it can also be a file of an agent::

    [[agent]]                                             # of a workspace in a test
    service = ["python3", "{files}/model_server.py", "{files}/script.json"]
    files   = ["model_server.py", "model_protocols.py", "script.json"]  # accepts on fd 3

    with ModelServer(Script((Turn(text="done"),))) as server:         # in a test, in a thread
        ask(server.url); server.requests

``POST /v1/messages``, ``/v1/responses`` and ``/v1/chat/completions``, streamed or not, with or
without ``/v1``; ``/v1/messages/count_tokens`` and ``GET /v1/models``. A script is JSON with the
fields of ``Script``; its turns are objects with the fields of ``Turn``.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

if __package__:
    from .model_protocols import PROTOCOLS, Chat, Messages, Responses, Turn
else:
    from model_protocols import (  # type: ignore[import-not-found, no-redef]
        PROTOCOLS,
        Chat,
        Messages,
        Responses,
        Turn,
    )

__all__ = ["ModelServer", "Request", "Script", "Turn"]

Json = dict[str, Any]

LISTEN_FD = 3
OUT_OF_TURNS = "Nothing more is scripted."


@dataclass(frozen=True)
class Script:
    """What the model answers.

    Attributes:
        turns: in order; after the last one there is a text that says so.
        by: how the turn is found: ``depth``, by how often the model has spoken in the
            conversation that the request shows, so that retries and conversations beside each
            other get what they should; or ``request``, one after the other.
        key: what requests have to be authorised with; anything will do where it is empty.
    """

    turns: tuple[Turn, ...]
    by: str = "depth"
    key: str = ""

    @classmethod
    def load(cls, path: Path) -> Script:
        """From a JSON file."""
        value = json.loads(path.read_text())
        return cls(**{**value, "turns": tuple(Turn(**turn) for turn in value["turns"])})

    def turn(self, index: int) -> Turn:
        """The turn of that number, from 0."""
        return self.turns[index] if index < len(self.turns) else Turn(text=OUT_OF_TURNS)


@dataclass(frozen=True)
class Request:
    """One request as it came. ``status`` is what it was answered with."""

    path: str
    body: Json = field(hash=False)
    status: int


class ModelServer:
    """A script at work; a context manager that serves in a thread.

    ``listening`` is a socket to accept on, else one is opened on the loopback. ``requests``
    has all that came, in order.
    """

    def __init__(self, script: Script, listening: socket.socket | None = None) -> None:
        self.requests: list[Request] = []
        self._script = script
        self._lock = threading.Lock()
        self._count = 0
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self), listening is None)
        if listening is not None:
            self._http.socket.close()
            self._http.socket = listening
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        """Where it is: ``http://127.0.0.1:PORT``."""
        return f"http://127.0.0.1:{self._http.socket.getsockname()[1]}"

    def serve(self) -> None:
        """Serve until ``__exit__``."""
        self._http.serve_forever(poll_interval=0.05)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def take(self, depth: Callable[[], int], key: str) -> tuple[Turn, int]:
        """The turn for a request, with the number of the request, from 1."""
        with self._lock:
            self._count += 1
            number = self._count
        if self._script.key and key != self._script.key:
            return Turn(status=401, error="invalid x-api-key"), number
        index = number - 1 if self._script.by == "request" else depth()
        return self._script.turn(index), number

    def record(self, request: Request) -> None:
        """Take note of a request."""
        with self._lock:
            self.requests.append(request)


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._send(200, {})

        def do_GET(self) -> None:
            listed = self.path.partition("?")[0].endswith("/models")
            self._send(200 if listed else 404, {"object": "list", "data": []})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = self.path.partition("?")[0].removeprefix("/v1")
            if path == "/messages/count_tokens":
                self._send(200, {"input_tokens": 100})
                return
            protocol = PROTOCOLS.get(path)
            if protocol is None:
                self._send(404, {"error": {"message": f"no such path: {path}"}})
                return
            bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
            key = self.headers.get("x-api-key") or bearer
            turn, number = server.take(lambda: protocol.depth(body), key)
            server.record(Request(path, body, turn.status))
            if turn.status != 200:
                self._send(turn.status, protocol.error(turn))
            else:
                self._answer(protocol, protocol.answer(turn, body, number), body, cut=turn.cut)

        def _answer(
            self,
            protocol: type[Messages | Responses | Chat],
            answer: Json,
            body: Json,
            *,
            cut: bool,
        ) -> None:
            if not body.get("stream"):
                self._send(200, answer)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            for name, data in protocol.events(answer, body):
                named = f"event: {name}\n" if name else ""
                typed = {"type": name, **data} if name else data
                self.wfile.write(f"{named}data: {json.dumps(typed)}\n\n".encode())
                if cut:
                    return
            if protocol is Chat:
                self.wfile.write(b"data: [DONE]\n\n")

        def _send(self, status: int, body: Json) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            pass

    return Handler


def main(arguments: Sequence[str]) -> None:
    """``model_server.py SCRIPT.json``: serve on the descriptor 3."""
    ModelServer(Script.load(Path(arguments[0])), socket.socket(fileno=LISTEN_FD)).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
