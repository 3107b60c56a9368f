"""Remote execution by real engines: BuildGrid with buildbox-workers, killed again and again."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle, pairwise
from pathlib import Path

import pytest

from kabuild.base.errors import InfraError
from kabuild.execution import LocalStrategy
from kabuild.model.action import Action, Limits, Resources
from kabuild.sandbox import Spawner
from kabuild.store import Store
from tests.testkit.actions import command
from tests.testkit.fleet import require_fleet
from tests.testkit.generated import generate

require_fleet()

from kabuild.execution.fleet import Fleet, FleetTerms
from kabuild.execution.host import cpu_platform
from kabuild.execution.placement import Placement
from kabuild.remote.client import RemoteCache
from kabuild.remote.endpoint import Endpoint
from tests.testkit.buildgrid import RealFleet, a_real_fleet, lacking
from tests.testkit.signers import trusted
from tests.testkit.workers import NODE, prepared_in

if why := lacking():
    pytest.skip(why, allow_module_level=True)

NOW = threading.Event()
ACTIONS, BETWEEN_KILLS = 200, 16
POOL = {"cpu": {"pool": "cpu"}}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealFleet]:
    base = tmp_path_factory.mktemp("real")
    generate(base / "work", 1, shared=1)
    with a_real_fleet(base, base / "work") as fleet:
        yield fleet


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "client") as store:
        yield store


@pytest.fixture
def clients(real: RealFleet, store: Store) -> Iterator[Fleet]:
    with _client(real, store) as fleet:
        yield fleet


def _client(
    real: RealFleet,
    store: Store,
    *,
    pools: dict[str, dict[str, str]] = POOL,
    queued: float = 60.0,
) -> Fleet:
    endpoint = replace(Endpoint.of(real.url), retries=3)
    terms = FleetTerms(
        real.url, trusted(NODE), Placement(pools=pools), queued, program=str(real.program)
    )
    return Fleet(store, terms, lambda: RemoteCache.connect(endpoint))


def shell(script: str, name: str = "a", **rest: object) -> Action:
    action = command(name, "/bin/sh", "-c", script, **rest)  # type: ignore[arg-type]
    return replace(action, platform=cpu_platform())


SCRIPTS = (
    "echo hi; echo there >&2; mkdir -p out/d/e; echo x >out/d/e/f; cp name out/result",
    "echo bad >&2; exit 7",
    "mkdir out/d; echo y >out/d/x; chmod +x out/d/x; head -c 9000000 /dev/zero >out/result",
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_result_is_that_of_a_local_run(clients: Fleet, store: Store, script: str) -> None:
    prepared = prepared_in(store, shell(script, outputs=("result", "d")))

    there = clients.run(prepared, NOW)

    with Spawner() as spawner:
        assert there == LocalStrategy(store, spawner).run(prepared, NOW)


def test_a_timeout_is_that_of_a_local_run(clients: Fleet, store: Store) -> None:
    prepared = prepared_in(store, shell("sleep 60", limits=Limits(timeout=0.5)))

    assert clients.run(prepared, NOW).fault == "timed out after 0.5 s"


def test_a_pool_that_nobody_serves_is_named(real: RealFleet, store: Store) -> None:
    client = _client(real, store, pools={"cpu": {"pool": "none"}}, queued=1.0)
    with client as fleet, pytest.raises(InfraError) as caught:
        fleet.run(prepared_in(store, shell("exit 0")), NOW)

    assert "pool=none" in caught.value.message
    assert "no worker took the action" in caught.value.message


def test_a_property_that_the_server_does_not_know_is_a_clear_failure(
    real: RealFleet, store: Store
) -> None:
    client = _client(real, store, pools={"cpu": {"planet": "mars"}})
    with client as fleet, pytest.raises(InfraError) as caught:
        fleet.run(prepared_in(store, shell("exit 0")), NOW)

    assert "planet" in caught.value.message


def test_a_node_says_what_it_offers(clients: Fleet) -> None:
    assert b'"platforms":{"cpu"' in clients.survey(POOL["cpu"], NOW)


def test_timed_actions_run_alone(clients: Fleet, store: Store) -> None:
    """Each sees whether another runs: they share a file of the machine only by being alone."""
    timed = Resources(cpus=0, lease="cpu", timed=True)
    script = "date +%s%N >out/result; sleep 0.5; date +%s%N >>out/result"
    ready = [prepared_in(store, shell(script, f"t{n}", resources=timed)) for n in range(4)]
    ready = [replace(item, fresh=str(number)) for number, item in enumerate(ready)]
    with ThreadPoolExecutor(4) as pool:
        ended = [*pool.map(lambda item: clients.run(item, NOW), ready)]

    spans = sorted(
        tuple(map(int, store.cas.get(file.digest).split()))
        for end in ended
        for file in end.result.files
    )
    assert len(spans) == 4
    assert all(one[1] <= two[0] for one, two in pairwise(spans))


def test_nothing_is_lost_and_nothing_is_wrong(
    real: RealFleet, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worker, the server or a node is killed after every few results; each comes back."""
    chosen = random.Random(1)
    parts = {"worker": real.workers, "server": [real.server], "node": real.nodes}
    kinds = cycle(parts)
    killed: list[str] = []
    made: list[int] = []
    lost: list[str] = []

    def run(number: int) -> None:
        prepared = prepared_in(store, shell(f"sleep 0.2; echo {number} >out/result", f"c{number}"))
        try:
            (file,) = fleet.run(prepared, NOW).result.files
        except InfraError as error:
            lost.append(f"{number}: {error}")
        else:
            made.append(int(store.cas.get(file.digest)))
            if len(made) % BETWEEN_KILLS == 0:
                killed.append(next(kinds))
                chosen.choice(parts[killed[-1]]).kill()

    began = time.monotonic()
    with _client(real, store, queued=300.0) as fleet, ThreadPoolExecutor(16) as pool:
        ended = [*pool.map(run, range(ACTIONS))]
    with capsys.disabled():
        counts = ", ".join(f"{killed.count(kind)} times a {kind}" for kind in parts)
        seconds = time.monotonic() - began
        sys.stdout.write(f"\n{ACTIONS} actions in {seconds:.0f} s; killed: {counts}\n")

    assert len(ended) == ACTIONS
    assert lost == []
    assert sorted(made) == [*range(ACTIONS)]
    assert len(killed) == ACTIONS // BETWEEN_KILLS
