"""The endpoint over real sockets: both protocols, retries, refusals, proxies, certificates."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import proxy
import pytest
from budget import Budget, Cost, Limits, Prices
from connection import ROOTS, open_connection, trust
from endpoint import Address, Endpoint, EndpointError, Patience, Trouble
from journal import Journal
from model import Asked, Model
from protocols import PROTOCOLS, Answer, AnswerError, Question, address

from tests.testkit.model_server import ModelServer, Script, Turn

KEY = "sk-correct-horse"
QUESTION = Question("a-model", "You are terse.", "Why?", 0)
ELSEWHERE = "127.0.0.2"
"""An address that is reached through a proxy, other than that of the own loopback."""

ANSWER = Answer("Because.", False, Cost(100, 30, 7))
HELLO = Turn("Because.", input_tokens=100, cached_tokens=30, output_tokens=7)


def endpoint(url: str, protocol: str = "openai", **more: object) -> tuple[Endpoint, list[float]]:
    """An endpoint that sleeps into a list."""
    slept: list[float] = []
    where = Address(url, protocol, key=KEY, **more)  # type: ignore[arg-type]
    return Endpoint(where, Patience(3, 20.0, 1.0), sleep=slept.append), slept


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_a_question_is_answered(protocol: str) -> None:
    with ModelServer(Script((HELLO,), key=KEY)) as server:
        asked, _ = endpoint(server.url, protocol)

        assert asked.ask(QUESTION) == ANSWER
        (request,) = server.requests
        assert "Why?" in str(request.body["messages"])
        assert "You are terse." in str(request.body)
        assert request.body["model"] == "a-model"


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_what_may_pass_is_asked_again(protocol: str, status: int) -> None:
    script = Script((Turn(status=status, error="later"), HELLO), by="request")
    with ModelServer(script) as server:
        asked, slept = endpoint(server.url, protocol)

        assert asked.ask(QUESTION).text == "Because."
        assert asked.retries == 1
        assert len(slept) == 1
        assert 0.5 <= slept[0] <= 1.5


def test_waits_grow_and_end() -> None:
    script = Script((Turn(status=503, error="later"),) * 9, by="request")
    with ModelServer(script) as server:
        asked, slept = endpoint(server.url)

        with pytest.raises(EndpointError, match="status 503: later, 3 times") as raised:
            asked.ask(QUESTION)
        assert raised.value.trouble is Trouble.DOWN
        assert len(server.requests) == 3
        assert slept[0] < 1.5 <= slept[1] * 1.5


@pytest.mark.parametrize(
    ("status", "trouble"),
    [(400, Trouble.REFUSED), (404, Trouble.REFUSED), (401, Trouble.DENIED), (403, Trouble.DENIED)],
)
def test_what_does_not_pass_is_asked_once_and_the_key_is_not_repeated(
    status: int, trouble: Trouble
) -> None:
    with ModelServer(Script((Turn(status=status, error=f"no {KEY}"),), by="request")) as server:
        asked, slept = endpoint(server.url)

        with pytest.raises(EndpointError) as raised:
            asked.ask(QUESTION)
        assert raised.value.trouble is trouble
        assert f"status {status}: no [key]" in str(raised.value)
        assert (len(server.requests), slept) == (1, [])


def test_a_key_in_an_answer_is_blotted_out() -> None:
    with ModelServer(Script((Turn(f"Your key is {KEY}."),))) as server:
        assert endpoint(server.url)[0].ask(QUESTION).text == "Your key is [key]."


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        url = f"http://127.0.0.1:{once.getsockname()[1]}"

    with pytest.raises(EndpointError, match=r"cannot be reached: .*refused.*, 3 times"):
        endpoint(url)[0].ask(QUESTION)


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[ThreadingHTTPServer]:
    """A server that does as it likes with a POST."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def send(handler: BaseHTTPRequestHandler, body: bytes, **headers: str) -> None:
    """Answer, with 200 or what a header ``status`` says."""
    handler.send_response(int(headers.pop("status", "200")))
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def test_the_server_says_how_long_to_wait_within_reason() -> None:
    def later(handler: BaseHTTPRequestHandler) -> None:
        send(handler, b"{}", status="429", Retry_After=next(waits))

    waits = iter(("7", "1e9", "soon"))
    with serving(later) as server:
        asked, slept = endpoint(f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(EndpointError):
            asked.ask(QUESTION)

    assert slept == [7.0, 60.0]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"choices": []}', b"[" * 100_000])
def test_what_is_no_answer_is_asked_again(body: bytes) -> None:
    with serving(lambda handler: send(handler, body)) as server:
        asked, slept = endpoint(f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(EndpointError, match="no answer: ") as raised:
            asked.ask(QUESTION)

    assert len(slept) == 2
    assert raised.value.trouble is Trouble.DOWN


@pytest.mark.parametrize("url", ["ftp://host", "host", "http://"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(EndpointError, match="is not an http"):
        endpoint(url)[0].ask(QUESTION)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("http://h", "http://h/v1/chat/completions"),
        ("http://h/", "http://h/v1/chat/completions"),
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        ("http://h/api/v3/", "http://h/api/v3/chat/completions"),
    ],
)
def test_where_the_protocol_is(given: str, asked: str) -> None:
    assert address(given, PROTOCOLS["openai"]) == asked


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_a_limit_of_tokens_is_told_and_noticed(protocol: str) -> None:
    speech = PROTOCOLS[protocol]
    body = speech.body(Question("m", "s", "t", 99))
    cut = {
        "content": [{"type": "text", "text": "Be"}],
        "stop_reason": "max_tokens",
        "choices": [{"message": {"content": "Be"}, "finish_reason": "length"}],
    }

    assert 99 in body.values()
    assert speech.read(cut) == Answer("Be", True, Cost())
    with pytest.raises(AnswerError):
        speech.read({})


def test_proposals_are_asked_for_at_once(tmp_path: Path) -> None:
    """Neither is answered before both are there."""
    both = threading.Barrier(2, timeout=120)

    class Together(ModelServer):
        def take(self, depth: Callable[[], int], key: str) -> tuple[Turn, int]:
            both.wait()
            return super().take(depth, key)

    with Together(Script((HELLO,) * 2)) as server:
        journal, budget = Journal(tmp_path / "j", lambda: 0.0), Budget(Limits(), Prices())
        model = Model(endpoint(server.url)[0], journal, budget, 2, lambda _: None)
        told = model.ask([Asked("1.1", QUESTION), Asked("1.2", QUESTION)])

    assert [one.answer.text for one in told if one.answer] == ["Because."] * 2


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that nobody else believes, and its key."""
    directory = tmp_path_factory.mktemp("tls")
    made, key = directory / "cert.pem", directory / "key.pem"
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-keyout", str(key), "-out", str(made), "-days", "2", "-subj", "/CN=model"),
        *("-addext", f"subjectAltName=IP:{ELSEWHERE}"),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl here to make a certificate with")
    return made, key


def test_through_the_proxy_of_a_session_with_certificates_that_count(
    certificate: tuple[Path, Path],
) -> None:
    """As with a real endpoint: CONNECT, then TLS with a host that only the proxy reaches."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    listening = socket.create_server((ELSEWHERE, 0))
    target = f"{ELSEWHERE}:{listening.getsockname()[1]}"
    entrance = socket.create_server(("127.0.0.1", 0))
    way = f"http://127.0.0.1:{entrance.getsockname()[1]}"
    way_out = proxy.Proxy([target], print)
    threading.Thread(target=way_out.serve, args=(entrance,), daemon=True).start()
    with ModelServer(Script((HELLO,)), context.wrap_socket(listening, server_side=True)):
        url = f"https://{target}"

        assert endpoint(url, proxy=way, authorities=certificate[0])[0].ask(QUESTION) == ANSWER
        with pytest.raises(EndpointError, match="certificate is not trusted"):
            endpoint(url, proxy=way)[0].ask(QUESTION)
        with pytest.raises(EndpointError, match="403 Not a listed host"):
            endpoint("https://127.0.0.3:1", proxy=way)[0].ask(QUESTION)


def test_a_sandbox_without_the_usual_files_still_knows_the_machines_authorities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is no /etc/ssl in a session, but what it links to is below /usr."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    monkeypatch.setenv("SSL_CERT_DIR", "/nowhere")
    assert not ssl.create_default_context().get_ca_certs(), "the usual files are hidden"
    known = sum(1 for root in map(Path, ROOTS) for _ in (*root.rglob("*.crt"), *root.glob("*.pem")))

    assert bool(trust(None).get_ca_certs()) == bool(known)


def test_the_own_loopback_needs_no_proxy() -> None:
    direct = open_connection("http://127.0.0.1:81/x", "http://127.0.0.1:9", 1.0, None)
    through = open_connection("http://elsewhere/x", "http://127.0.0.1:9", 1.0, None)

    assert (direct.host, direct.port) == ("127.0.0.1", 81)
    assert (through.host, through.port) == ("127.0.0.1", 9)
    with pytest.raises(ValueError, match="not the address of a proxy"):
        open_connection("http://elsewhere/x", "nonsense", 1.0, None)
