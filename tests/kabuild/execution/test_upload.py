"""Results are sent to a shared cache in batches, and none without what it needs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kabuild.base.errors import RemoteError
from kabuild.execution.prepared import Prepared, prepare
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import Store
from kabuild.store.action_cache import encode
from kabuild.store.merkle import build
from tests.testkit.actions import command
from tests.testkit.fleet import require_fleet

require_fleet()

from grpc import StatusCode

from kabuild.execution.upload import _MOST, Parcel, Uploader
from kabuild.remote.client import RemoteCache
from tests.testkit.reapi_server import ReapiServer
from tests.testkit.signers import signer

COUNT = _MOST + 100


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as store:
        yield store


def parcel(store: Store, number: int) -> Parcel:
    """One result with an output, whose blobs the store has."""
    item: Prepared = prepare(command(f"a{number}", "run", str(number)), build([]))
    store.cas.put(item.message)
    store.cas.put(item.command)
    output = OutputFile("result", store.cas.put(f"output {number}".encode()))
    entry = encode(ActionResult(0, (output,)), store.cas, ended=0.0)
    return Parcel(item.key, entry, Digest.of(item.command))


def sent(server: ReapiServer, store: Store, parcels: list[Parcel]) -> list[Exception]:
    """Send all ``parcels``, which wait for the connection; the failures that were told."""
    offered = threading.Event()
    failures: list[Exception] = []
    with RemoteCache.connect(server.endpoint(retries=0)) as cache:

        def connect() -> RemoteCache:
            offered.wait()
            return cache

        uploader = Uploader(store, signer(), connect, failures.append)
        for item in parcels:
            uploader.send(item)
        offered.set()
        uploader.finish(lambda: False)
    return failures


def test_results_that_wait_are_sent_together(server: ReapiServer, store: Store) -> None:
    parcels = [parcel(store, number) for number in range(COUNT)]

    assert sent(server, store, parcels) == []

    assert {*server.results} == {item.key.hash for item in parcels}
    assert all(item.command.hash in server.blobs for item in parcels)
    assert server.calls["UpdateActionResult"] == COUNT
    assert server.calls["FindMissingBlobs"] <= 3, "the first that came, and two batches"
    assert server.calls["BatchUpdateBlobs"] <= 3


def test_a_result_is_not_sent_without_its_blobs(server: ReapiServer, store: Store) -> None:
    there, lacking = parcel(store, 0), parcel(store, 1)
    gone = Parcel(lacking.key, lacking.entry, Digest.of(b"no such command"))

    (failure,) = sent(server, store, [gone, there])

    assert str(Digest.of(b"no such command").hash) in str(failure)
    assert server.results == {}


@pytest.mark.parametrize("method", ["FindMissingBlobs", "BatchUpdateBlobs", "UpdateActionResult"])
@pytest.mark.parametrize("code", [StatusCode.PERMISSION_DENIED, StatusCode.NOT_FOUND])
def test_a_refusal_is_told_once(
    server: ReapiServer, store: Store, method: str, code: StatusCode
) -> None:
    server.faults[method] = lambda _: code

    (failure,) = sent(server, store, [parcel(store, number) for number in range(5)])

    assert isinstance(failure, RemoteError)
    assert f"{method}: {code.name}" in failure.message
    assert server.results == {}
