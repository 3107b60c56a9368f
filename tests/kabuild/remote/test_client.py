"""The client against a server in this process: right answers, and every fault we thought of."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kabuild.base.errors import Reason, RemoteError
from kabuild.model.digest import EMPTY, Digest
from kabuild.store import Store
from tests.testkit.fleet import require_fleet

require_fleet()

from grpc import StatusCode

from kabuild.remote.blobs import RemoteBlobs
from kabuild.remote.client import RemoteCache
from kabuild.remote.endpoint import Endpoint
from kabuild.remote.loss import Loss
from kabuild.remote.rpc import WINDOW, Rpc
from tests.testkit.reapi_server import Fault, ReapiServer


@pytest.fixture
def server() -> Iterator[ReapiServer]:
    with ReapiServer() as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as store:
        yield store


class Pauses(list[float]):
    """Remembers pauses instead of making them."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def rpc_of(server: ReapiServer, pauses: Pauses | None = None, *, retries: int = 3) -> Rpc:
    return Rpc(server.endpoint(retries=retries), pause=Pauses() if pauses is None else pauses)


def first(count: int, code: StatusCode) -> Fault:
    """The first ``count`` calls fail."""
    return lambda number: code if number < count else None


def always(code: StatusCode) -> Fault:
    return lambda _: code


def test_results_come_back_in_their_order(server: ReapiServer) -> None:
    keys = [Digest.of(str(number).encode()) for number in range(300)]
    for number, key in enumerate(keys):
        if number % 3:
            server.results[key.hash] = f"entry {number}".encode()

    with RemoteCache.connect(server.endpoint()) as cache:
        found = cache.results.get_many(keys)

    assert found == [f"entry {n}".encode() if n % 3 else None for n in range(300)]
    assert server.calls["GetActionResult"] == 300
    assert 1 < server.most_at_once <= WINDOW


def test_results_are_sent(server: ReapiServer) -> None:
    with RemoteCache.connect(server.endpoint()) as cache:
        cache.results.put(EMPTY, b"entry")

    assert server.results == {EMPTY.hash: b"entry"}


@pytest.mark.parametrize("batch", [0, 100_000])
def test_blobs_go_there_and_back_whatever_their_size(
    server: ReapiServer, store: Store, tmp_path: Path, batch: int
) -> None:
    server.batch = batch
    source = random.Random(1)
    sizes = [0, 1, 1000, 60_000, 99_000, 300_000, 5 << 20]
    digests = [store.cas.put(source.randbytes(size)) for size in sizes]

    with RemoteCache.connect(server.endpoint()) as cache, Store.open(tmp_path / "two") as other:
        cache.blobs.upload(digests, store.cas)
        sent = server.calls.copy()
        cache.blobs.upload(digests, store.cas)
        lost = cache.blobs.fetch(digests, other)
        same = [other.cas.get(digest) == store.cas.get(digest) for digest in digests]

    assert (lost, all(same)) == ({}, True)
    assert server.calls["Write"] == sent["Write"] == (3 if batch else 1), (
        "once, and large ones only"
    )
    assert server.calls["Read"] == sent["Write"]


def test_many_blobs_need_few_questions(server: ReapiServer, store: Store, tmp_path: Path) -> None:
    digests = [store.cas.put(f"{number}".encode() * 50) for number in range(2000)]

    with RemoteCache.connect(server.endpoint()) as cache, Store.open(tmp_path / "two") as other:
        cache.blobs.upload(digests, store.cas)
        cache.blobs.fetch(digests, other)

    assert server.calls["FindMissingBlobs"] == 1
    assert server.calls["BatchUpdateBlobs"] == server.calls["BatchReadBlobs"] == 1


def test_lost_and_damaged_blobs_are_named_and_not_stored(server: ReapiServer, store: Store) -> None:
    small, large = server.put(b"small"), server.put(b"large" * 1_000_000)
    changed, cut = server.put(b"changed"), server.put(b"cut" * 2_000_000)
    longer = server.put(b"longer" * 1_000_000)
    gone = [Digest.of(b"gone"), Digest("0" * 64, 9_000_000)]
    server.blobs[changed.hash] = b"CHANGED"
    server.blobs[cut.hash] = b"cut"
    server.blobs[longer.hash] += b"!"

    with RemoteCache.connect(server.endpoint()) as cache:
        lost = cache.blobs.fetch([small, large, changed, cut, longer, *gone], store)

    damaged = dict.fromkeys([changed, cut, longer], Loss.DAMAGED)
    assert lost == {**damaged, **dict.fromkeys(gone, Loss.GONE)}
    assert store.cas.missing([small, large, *lost]) == [*lost]


def test_a_blob_that_was_not_asked_for_is_not_stored(server: ReapiServer, store: Store) -> None:
    wanted, other = Digest.of(b"wanted"), Digest.of(b"other")
    rpc = rpc_of(server)
    blobs = RemoteBlobs(rpc, 1 << 20)
    answer = b"\x0a" + bytes([len(part := _read_blob(other, b"other"))]) + part
    rpc.wave = lambda *_: [answer]  # type: ignore[method-assign]

    assert blobs.fetch([wanted], store) == {wanted: Loss.GONE}
    assert not store.cas.has(other)


def _read_blob(digest: Digest, data: bytes) -> bytes:
    from tests.testkit.reapi import message_class

    blob = message_class("ReadBlob")(data=data)
    blob.digest.hash, blob.digest.size_bytes = digest.hash, digest.size
    return bytes(blob.SerializeToString())


LARGE = b"x" * 200_000
"""More than a server with batches of 100,000 bytes takes at once."""

CALLS: dict[str, Callable[[RemoteCache, Store], object]] = {
    "GetActionResult": lambda cache, _: cache.results.get_many([EMPTY]),
    "UpdateActionResult": lambda cache, _: cache.results.put(EMPTY, b"x"),
    "FindMissingBlobs": lambda cache, _: cache.blobs.missing([EMPTY]),
    "BatchReadBlobs": lambda cache, store: cache.blobs.fetch([Digest.of(b"x")], store),
    "Read": lambda cache, store: cache.blobs.fetch([Digest.of(LARGE)], store),
    "BatchUpdateBlobs": lambda cache, store: cache.blobs.upload([store.cas.put(b"x")], store.cas),
    "Write": lambda cache, store: cache.blobs.upload([store.cas.put(LARGE)], store.cas),
}


def connected(server: ReapiServer, pauses: Pauses) -> RemoteCache:
    from kabuild.remote.capabilities import ask

    rpc = rpc_of(server, pauses)
    return RemoteCache(rpc, ask(rpc, 10.0))


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize(
    "code",
    [
        StatusCode.UNAVAILABLE,
        StatusCode.RESOURCE_EXHAUSTED,
        StatusCode.ABORTED,
        StatusCode.INTERNAL,
    ],
)
def test_what_passes_is_tried_again(
    server: ReapiServer, store: Store, method: str, code: StatusCode
) -> None:
    server.batch = 100_000
    server.put(b"x")
    server.put(LARGE)
    if method in {"BatchUpdateBlobs", "Write"}:
        server.blobs.clear()
    server.faults[method] = first(2, code)
    pauses = Pauses()

    with connected(server, pauses) as cache:
        CALLS[method](cache, store)

    assert server.calls[method] == 3
    assert len(pauses) == 2
    assert 0 < pauses[0] < pauses[1] * 2 < 1


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize(
    ("code", "calls", "reason"),
    [
        (StatusCode.UNAVAILABLE, 4, Reason.REMOTE_UNAVAILABLE),
        (StatusCode.PERMISSION_DENIED, 1, Reason.REMOTE_REFUSED),
        (StatusCode.UNAUTHENTICATED, 1, Reason.REMOTE_REFUSED),
        (StatusCode.UNIMPLEMENTED, 1, Reason.REMOTE_REFUSED),
        (StatusCode.INVALID_ARGUMENT, 1, Reason.REMOTE_REFUSED),
        (StatusCode.DEADLINE_EXCEEDED, 1, Reason.REMOTE_UNAVAILABLE),
    ],
)
def test_what_stays_is_an_error(
    server: ReapiServer, store: Store, method: str, code: StatusCode, calls: int, reason: Reason
) -> None:
    server.batch = 100_000
    server.faults[method] = always(code)

    with connected(server, Pauses()) as cache, pytest.raises(RemoteError) as caught:
        CALLS[method](cache, store)

    assert (caught.value.reason, caught.value.status) == (reason, code.name)
    assert server.calls[method] == calls
    assert code.name in str(caught.value)


def test_fewer_are_sent_at_once_where_there_were_too_many(server: ReapiServer) -> None:
    """As BuildGrid does: it refuses what exceeds its threads."""
    keys = [Digest.of(str(number).encode()) for number in range(200)]
    for key in keys:
        server.results[key.hash] = b"entry"
    server.faults["GetActionResult"] = first(3, StatusCode.RESOURCE_EXHAUSTED)
    pauses = Pauses()

    with connected(server, pauses) as cache:
        assert cache.results.get_many(keys) == [b"entry"] * 200
        server.most_at_once = 0
        cache.results.get_many(keys)

    assert len(pauses) == 3
    assert server.most_at_once <= WINDOW // 8


@pytest.mark.parametrize("method", ["GetCapabilities", *CALLS])
def test_a_server_that_does_not_answer_costs_one_timeout(
    server: ReapiServer, store: Store, method: str
) -> None:
    server.batch = 100_000
    server.slow = {method}
    endpoint = server.endpoint(timeout=1.5)

    with (
        pytest.raises(RemoteError, match=r"DEADLINE_EXCEEDED: no answer in 1\.5 s"),
        RemoteCache.connect(endpoint) as cache,
    ):
        CALLS[method](cache, store)

    assert server.calls[method] == 1


@pytest.mark.parametrize("method", ["GetActionResult", "FindMissingBlobs", "BatchUpdateBlobs"])
def test_a_stopped_build_waits_for_no_answer(
    server: ReapiServer, store: Store, method: str
) -> None:
    server.slow = {method}
    stopped = threading.Event()
    with RemoteCache.connect(server.endpoint(timeout=600), stopped=stopped.is_set) as cache:
        stopped.set()

        with pytest.raises(RemoteError) as caught:
            CALLS[method](cache, store)

    assert caught.value.reason is Reason.INTERRUPTED


def test_nobody_there_is_an_error_soon() -> None:
    rpc = Rpc(Endpoint("127.0.0.1:1", retries=2), pause=(pauses := Pauses()))

    with pytest.raises(RemoteError) as caught:
        rpc.unary("/a/b", b"")

    assert caught.value.reason is Reason.REMOTE_UNAVAILABLE
    assert len(pauses) == 2


def test_a_server_of_something_else_is_named(server: ReapiServer) -> None:
    server.faults["GetCapabilities"] = always(StatusCode.UNIMPLEMENTED)

    with pytest.raises(RemoteError, match="UNIMPLEMENTED") as caught:
        RemoteCache.connect(server.endpoint())

    assert caught.value.hint == "the server does not speak the Remote Execution API"


def test_a_wrong_instance_is_named(server: ReapiServer) -> None:
    endpoint = Endpoint.of(f"{server.url}/man")

    with pytest.raises(RemoteError, match="no instance 'man'") as caught:
        RemoteCache.connect(endpoint)

    assert caught.value.hint == "is the instance 'man' right?"


def test_another_digest_function_is_refused(server: ReapiServer) -> None:
    server.functions = [2, 9]

    with pytest.raises(RemoteError, match="digest function is SHA1, BLAKE3, expected SHA256"):
        RemoteCache.connect(server.endpoint())


def test_a_server_says_what_it_can(server: ReapiServer) -> None:
    server.batch, server.writable = 1 << 20, False

    with RemoteCache.connect(server.endpoint()) as cache:
        said = cache.capabilities

    assert (said.version, said.functions, said.writable) == ("2.0 to 2.3", ("SHA256",), False)
    assert said.batch == (1 << 20) - (64 << 10)


def test_the_instance_and_the_headers_go_with_every_call(server: ReapiServer, store: Store) -> None:
    server.instances = {"main"}
    endpoint = Endpoint.of(f"{server.url}/main")
    endpoint = Endpoint(endpoint.target, instance="main", headers=(("authorization", "Bearer t"),))

    server.batch = 100_000
    with RemoteCache.connect(endpoint) as cache:
        for call in CALLS.values():
            call(cache, store)

    assert {*CALLS, "GetCapabilities"} == server.calls.keys()
    assert {headers["authorization"] for headers in server.headers} == {"Bearer t"}
    ours = "build.bazel.remote.execution.v2.requestmetadata-bin"
    assert all(b"kabuild" in bytes(headers[ours]) for headers in server.headers)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", CALLS)
def test_an_answer_that_is_no_message_is_an_error(
    server: ReapiServer, store: Store, method: str
) -> None:
    server.batch = 100_000
    with connected(server, Pauses()) as cache:
        rpc: Any = cache.blobs._rpc
        rpc.wave = lambda _, requests: [b"\xff" * 9] * len(requests)
        rpc.unary = rpc.write = lambda *_: b"\xff" * 9
        rpc.read = lambda *_: iter([b"\xff" * 9])
        if method in WITHOUT_MESSAGE:
            assert CALLS[method](cache, store) == WITHOUT_MESSAGE[method]
            return
        with pytest.raises(RemoteError) as caught:
            CALLS[method](cache, store)

    assert caught.value.reason is Reason.REMOTE_REFUSED


WITHOUT_MESSAGE: dict[str, object] = {
    "GetActionResult": [b"\xff" * 9],
    "UpdateActionResult": None,
    "Read": {Digest.of(LARGE): Loss.DAMAGED},
}
"""Calls whose answer is looked at by others, or not at all, or is a stream."""
