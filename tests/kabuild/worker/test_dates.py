"""Clocks that differ, and certificates that have expired, between a client and its fleet."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.base.clock import Clock
from kabuild.base.errors import InfraError, Reason
from kabuild.execution import Execution
from kabuild.execution.prepared import Prepared
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import Store
from tests.testkit.actions import command
from tests.testkit.clock import FakeClock
from tests.testkit.fleet import require_fleet

require_fleet()

import grpc

from kabuild.remote.endpoint import Endpoint
from tests.testkit.certificates import Authority
from tests.testkit.signers import trusted
from tests.testkit.workers import NODE, Fixture, a_fleet

NOW = threading.Event()
ACTION = command("a")
DAY = 86_400.0


class Takes90Seconds:
    """A node's strategy."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def hermetic(self) -> bool:
        return True

    def run(self, prepared: Prepared, cancel: threading.Event) -> Execution:
        digest = self._store.cas.put(b"made")
        return Execution(ActionResult(0, (OutputFile("result", digest),), seconds=90.0))


@contextmanager
def fleet(
    root: Path, *, clock: Clock | None = None, credentials: object = None
) -> Iterator[Fixture]:
    with (
        Store.open(root / "node") as store,
        a_fleet(
            root, Takes90Seconds(store), store, clock=clock, credentials=credentials
        ) as fixture,
    ):
        yield fixture


@pytest.mark.parametrize("skew", [-400 * DAY, -60.0, 60.0, 400 * DAY])
def test_a_node_whose_clock_is_wrong_gives_right_results(tmp_path: Path, skew: float) -> None:
    """The seconds of a run are a difference of two readings of its clock."""
    with fleet(tmp_path, clock=FakeClock(time.time() + skew)) as fixture:
        client = fixture.fleet(keys=trusted(NODE, options='valid-after="20200101"'))
        ended = client.run(fixture.prepared(ACTION), NOW)
        again = client.run(fixture.prepared(ACTION), NOW)

    assert (ended.result.seconds, len(ended.result.files), ended.fault) == (90.0, 1, "")
    assert again == ended


def test_the_dates_of_keys_are_those_of_the_clients_clock(tmp_path: Path) -> None:
    """A client whose clock is wrong fails clearly: what it runs is no verdict."""
    bounds = trusted(NODE, options='valid-after="20240101",valid-before="20250101"')
    inside, outside = 1_720_000_000.0, 1_770_000_000.0
    with fleet(tmp_path, clock=FakeClock(outside)) as fixture:
        prepared = fixture.prepared(ACTION)
        right = fixture.fleet(keys=bounds, clock=FakeClock(inside)).run(prepared, NOW)
        with pytest.raises(InfraError) as caught:
            fixture.fleet(keys=bounds, clock=FakeClock(outside)).run(prepared, NOW)

    assert right.result.files
    assert "a worker's result does not count: it is signed with a key that" in caught.value.message


def test_an_expired_certificate_of_the_server_is_a_clear_failure(tmp_path: Path) -> None:
    """Nothing is sent to it; with a valid one, the same action runs."""
    authority = Authority()
    seen: list[object] = []
    for number, days in enumerate((-1, 1)):
        certificate, key = authority.issue("localhost", days=days)
        credentials = grpc.ssl_server_credentials([(key, certificate)])
        with fleet(tmp_path / str(number), credentials=credentials) as fixture:
            where = secure(fixture, authority)
            try:
                ended = fixture.fleet(endpoint=where).run(fixture.prepared(ACTION), NOW)
            except InfraError as error:
                seen.append((error.reason, "doctor" in error.hint, dict(fixture.server.calls)))
            else:
                seen.append(len(ended.result.files))

    assert seen == [(Reason.REMOTE_UNAVAILABLE, True, {}), 1]


def test_an_expired_certificate_of_the_client_is_a_clear_failure(tmp_path: Path) -> None:
    authority = Authority()
    certificate, key = authority.issue("localhost")
    credentials = grpc.ssl_server_credentials(
        [(key, certificate)], authority.pem, require_client_auth=True
    )
    with fleet(tmp_path, credentials=credentials) as fixture:
        prepared = fixture.prepared(ACTION)
        for days in (-1, 1):
            mine, private = authority.issue("me", days=days)
            where = replace(secure(fixture, authority), certificate=mine, key=private)
            client = fixture.fleet(endpoint=where)
            if days > 0:
                assert client.run(prepared, NOW).result.files
                continue
            with pytest.raises(InfraError) as caught:
                client.run(prepared, NOW)
            assert caught.value.reason is Reason.REMOTE_UNAVAILABLE
            assert not fixture.server.calls


def secure(fixture: Fixture, authority: Authority) -> Endpoint:
    return replace(
        fixture.server.endpoint(retries=0),
        target=f"localhost:{fixture.server.port}",
        secure=True,
        roots=authority.pem,
    )
