"""A file server on the loopback interface that misbehaves when it is told to."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class FileServer:
    """Files by path, what happens to them on the way, and what was asked for.

    Attributes:
        files: the content of each path.
        cuts: by path, how many bytes an answer has before the connection drops, one answer
            after the other.
        stalls: paths whose answers stop before the last byte, until ``release`` is set;
            ``stalled`` is set when one does.
        errors: by path, status codes to answer with, one request after the other.
        resumes: whether ``Range`` is honoured.
        requests: method, path and ``Range`` of every request.
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cuts: dict[str, list[int]] = field(default_factory=dict)
    stalls: set[str] = field(default_factory=set)
    errors: dict[str, list[int]] = field(default_factory=dict)
    resumes: bool = True
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    stalled: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    def asked(self, path: str) -> list[str]:
        """The ranges of all requests for the content of a path."""
        return [span for method, p, span in self.requests if p == path and method == "GET"]

    def serve_project(self, name: str, wheel: str, data: bytes, *, fragment: str = "") -> None:
        """A wheel, and the page of its project in a simple index; ``fragment`` is a digest."""
        self.files[f"/files/{wheel}"] = data
        link = f'<a href="/files/{wheel}{fragment}">{wheel}</a>\n'
        page = self.files.get(f"/simple/{name}/", b"<!DOCTYPE html>\n")
        self.files[f"/simple/{name}/"] = page + link.encode()


@contextmanager
def serving() -> Iterator[FileServer]:
    """A server for the time of the block."""
    state = FileServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _answer(self, state)

        def do_HEAD(self) -> None:
            _answer(self, state)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(handler: BaseHTTPRequestHandler, state: FileServer) -> None:
    path, span = handler.path, handler.headers.get("Range", "")
    state.requests.append((handler.command, path, span))
    handler.close_connection = True
    errors = state.errors.get(path)
    if errors or path not in state.files:
        handler.send_error(errors.pop(0) if errors else 404)
        return
    body = state.files[path]
    match = re.fullmatch(r"bytes=(\d+)-", span) if state.resumes else None
    start = int(match[1]) if match else 0
    handler.send_response(206 if match else 200)
    if match:
        handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
    kind = "text/html" if path.endswith("/") else "application/octet-stream"
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body) - start))
    handler.end_headers()
    if handler.command == "GET":
        _send(handler, state, path, body[start:])


def _send(handler: BaseHTTPRequestHandler, state: FileServer, path: str, body: bytes) -> None:
    cuts = state.cuts.get(path)
    if cuts:
        handler.wfile.write(body[: cuts.pop(0)])
    elif path in state.stalls and not state.release.is_set():
        handler.wfile.write(body[:-1])
        handler.wfile.flush()
        state.stalled.set()
        state.release.wait()
        with suppress(OSError):  # whoever asked may be dead
            handler.wfile.write(body[-1:])
    else:
        handler.wfile.write(body)
