"""A shared cache that fails, in whatever way: everything is built, with one warning."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kabuild.base.errors import Reason, RemoteError
from kabuild.execution import CachedExecutor, Inputs
from kabuild.model.result import Outcome
from kabuild.scheduler import FileLeases, Scheduler
from kabuild.store import Store
from tests.testkit.events import RecordingSink
from tests.testkit.execution import ScriptedStrategy
from tests.testkit.fleet import require_fleet
from tests.testkit.index import NoIndex

require_fleet()

from grpc import StatusCode

from kabuild.execution.shared import SharedCache
from kabuild.remote.client import RemoteCache
from tests.testkit.machines import READER, WRITER, Machine, graph
from tests.testkit.reapi_server import Fault, ReapiServer


def always(code: StatusCode) -> Fault:
    return lambda _: code


@pytest.mark.parametrize(
    ("method", "code", "said"),
    [
        ("GetCapabilities", StatusCode.UNAVAILABLE, "UNAVAILABLE"),
        ("GetCapabilities", StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"),
        ("GetActionResult", StatusCode.UNAVAILABLE, "UNAVAILABLE"),
        ("GetActionResult", StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"),
        ("GetActionResult", StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED"),
        ("BatchReadBlobs", StatusCode.UNAVAILABLE, "UNAVAILABLE"),
        ("BatchReadBlobs", StatusCode.DATA_LOSS, "DATA_LOSS"),
    ],
)
def test_a_server_that_fails_costs_one_warning(
    server: ReapiServer, writer: Machine, reader: Machine, method: str, code: StatusCode, said: str
) -> None:
    server.faults[method] = always(code)

    ended = reader.build(READER)

    assert all(item.outcome is Outcome.DONE for item in ended.settled.values())
    assert reader.ran == 6
    assert len(reader.warnings) == 1
    start = "the rest of this build goes without the shared cache grpc://cache: "
    assert reader.warnings[0].startswith(start)
    assert said in reader.warnings[0]
    assert server.calls[method] <= 2, "the second task's question was on its way"


def test_a_server_that_dies_in_the_middle_costs_one_warning(
    server: ReapiServer, writer: Machine, reader: Machine
) -> None:
    """After the first wave: what had come counts, the rest is made here."""
    faults = server.faults
    faults["GetActionResult"] = lambda n: StatusCode.UNAVAILABLE if n >= 2 else None

    reader.build(READER)

    assert reader.ran == 4
    assert len(reader.warnings) == 1


def test_a_slow_server_costs_one_timeout(
    server: ReapiServer, writer: Machine, reader: Machine
) -> None:
    server.slow = {"GetActionResult"}
    reader.endpoint = server.endpoint(timeout=1.5)

    reader.build(READER)

    assert reader.ran == 6
    assert "DEADLINE_EXCEEDED: no answer in 1.5 s" in reader.warnings[0]
    assert len(reader.warnings) == 1


def test_nobody_there_costs_one_warning(
    server: ReapiServer, tmp_path: Path, reader: Machine
) -> None:
    server.close()

    reader.build(WRITER)

    assert reader.ran == 6
    assert len(reader.warnings) == 1


def test_who_may_not_write_may_read(server: ReapiServer, writer: Machine, reader: Machine) -> None:
    server.writable = False
    forgotten = writer.build(WRITER).settled["//t:a.score"].key
    assert forgotten
    del server.results[forgotten.hash]

    reader.build(WRITER)

    assert reader.ran == 1
    assert len(reader.warnings) == 1
    start = "results are not sent to the shared cache grpc://cache: UpdateActionResult: PERM"
    assert reader.warnings[0].startswith(start)


def test_a_full_server_costs_one_warning(server: ReapiServer, reader: Machine) -> None:
    server.faults["BatchUpdateBlobs"] = always(StatusCode.RESOURCE_EXHAUSTED)

    reader.build(WRITER)

    assert reader.ran == 6
    assert len(reader.warnings) == 1
    assert not server.results, "no result without its blobs"


def test_a_store_that_is_damaged_here_is_mended_from_there(
    writer: Machine, reader: Machine
) -> None:
    reader.build(READER)
    for path in (reader.root / "cas").glob("*/*"):
        path.unlink()

    reader.build(READER)

    assert (reader.ran, reader.warnings) == (0, [])


def test_a_stopped_build_does_not_wait_for_the_server(tmp_path: Path, server: ReapiServer) -> None:
    server.slow = {"FindMissingBlobs"}
    stop = threading.Event()
    with Store.open(tmp_path / "one") as store:
        shared = SharedCache(
            store,
            WRITER,
            lambda: RemoteCache.connect(server.endpoint(timeout=600), stopped=stop.is_set),
            warn=(warnings := list[str]()).append,
            stopped=stop.is_set,
        )
        strategy = ScriptedStrategy(store.cas)
        executor = CachedExecutor(
            Inputs({}, NoIndex()), store.cas, store.actions, strategy, shared=shared
        )
        Scheduler(executor, RecordingSink(), FileLeases(store.leases), jobs=2).run(graph())
        stop.set()

        shared.close()

    assert warnings == []
    assert not server.results


def test_an_error_of_ours_is_no_verdict(tmp_path: Path, reader: Machine) -> None:
    """Whatever connecting raises, everything is built."""

    def refuse() -> RemoteCache:
        raise RemoteError(Reason.REMOTE_REFUSED, "no")

    with Store.open(tmp_path / "x") as store:
        warnings: list[str] = []
        with SharedCache(store, WRITER, refuse, warn=warnings.append) as shared:
            executor = CachedExecutor(
                Inputs({}, NoIndex()),
                store.cas,
                store.actions,
                ScriptedStrategy(store.cas),
                shared=shared,
            )
            scheduler = Scheduler(executor, RecordingSink(), FileLeases(store.leases), jobs=2)
            ended = scheduler.run(graph())

    assert all(item.outcome is Outcome.DONE for item in ended.settled.values())
    assert len(warnings) == 1


def test_a_failure_of_an_import_ends_the_waves(
    server: ReapiServer,
    writer: Machine,
    reader: Machine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kabuild.execution.shared.WAVE", 1)
    server.faults["BatchReadBlobs"] = always(StatusCode.DATA_LOSS)

    reader.build(READER)

    assert reader.ran == 6
    assert len(reader.warnings) == 1
    assert server.calls["BatchReadBlobs"] == 1
