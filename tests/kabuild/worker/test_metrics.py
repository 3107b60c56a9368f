"""A node's numbers, as Prometheus reads them."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kabuild.base.errors import InfraError, Interrupted, Reason
from kabuild.execution import Execution
from kabuild.execution.prepared import Prepared
from kabuild.model.action import Resources
from kabuild.model.device import Device, Devices
from kabuild.model.platform import Platform
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import Store
from kabuild.store.merkle import Directory
from tests.testkit.actions import CPU, command
from tests.testkit.execution import MemoryLeases
from tests.testkit.fleet import require_fleet

require_fleet()
pytest.importorskip("prometheus_client", reason="pip install 'kabuild[fleet]'")

from prometheus_client.parser import text_string_to_metric_families

from kabuild.worker.intake import Intake
from kabuild.worker.metrics import Metrics, serving
from kabuild.worker.node import Ended
from kabuild.worker.offer import Offer
from kabuild.worker.turns import Turns
from tests.testkit.workers import a_fleet

NEVER = threading.Event()
ONE, TWO = (Device("cuda", n, f"GPU-{n}", "sm_90") for n in range(2))
OFFER = Offer({CPU.name: CPU}, Devices("cuda", (ONE, TWO)), {}, 4)
DEVICES = (ONE.lease, TWO.lease)
EMPTY = Directory({}, {})
FAR, ELSEWHERE = Resources(1, "cuda"), Platform("cuda", (("arch", "sm_90"),))


def numbers(url: str) -> dict[str, float]:
    """Samples by name, with their labels as Prometheus writes them."""
    with urllib.request.urlopen(url, timeout=120) as answer:
        text = answer.read().decode()
    return {
        sample.name + "".join(f" {k}={v}" for k, v in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_how_actions_end_and_how_long_they_take_is_counted() -> None:
    metrics = Metrics(OFFER, Turns(4, MemoryLeases(), {}).load)
    with serving(metrics, "127.0.0.1", 0) as url:
        metrics.took_in(Intake(EMPTY, found=7, new=2))
        for outcome in ("PASS", "PASS", "REJECTED"):
            metrics.ended(Ended(0, outcome, "timed", waited=0.2, ran=3.0))
        metrics.ended(Ended(72, "refused"))
        found = numbers(url)

    assert found["kabuild_node_actions_total code=0 outcome=PASS"] == 2
    assert found["kabuild_node_actions_total code=0 outcome=REJECTED"] == 1
    assert found["kabuild_node_actions_total code=72 outcome=refused"] == 1
    assert found["kabuild_node_input_files_total cache=hit"] == 7
    assert found["kabuild_node_input_files_total cache=miss"] == 2
    assert found["kabuild_node_run_seconds_count kind=timed"] == 3
    assert found["kabuild_node_run_seconds_sum kind=timed"] == 9
    assert found["kabuild_node_run_seconds_bucket kind=timed le=2.5"] == 0
    assert found["kabuild_node_run_seconds_bucket kind=timed le=5.0"] == 3
    assert found["kabuild_node_wait_seconds_bucket kind=timed le=0.25"] == 3
    assert found["kabuild_node_slots"] == 4


def test_what_waits_runs_and_is_leased_is_read_when_asked() -> None:
    turns = Turns(4, MemoryLeases(), {"cuda": [ONE.lease, TWO.lease]})
    metrics = Metrics(OFFER, turns.load)
    waits = threading.Event()
    alone = threading.Thread(target=lambda: _take(turns, waits), daemon=True)
    with serving(metrics, "127.0.0.1", 0) as url, turns.take(Resources(1, "cuda"), NEVER) as lease:
        alone.start()
        while not turns.load().waiting:
            pass
        during = numbers(url)
        waits.set()
        alone.join(120)
        turns.withdraw(TWO.lease)
        after = numbers(url)

    assert (during["kabuild_node_running"], during["kabuild_node_queued"]) == (1, 1)
    assert (after["kabuild_node_running"], after["kabuild_node_queued"]) == (1, 0)
    assert lease == ONE.lease
    held = {device: during[f"kabuild_node_lease device={device}"] for device in DEVICES}
    lost = {device: after[f"kabuild_node_device_lost device={device}"] for device in DEVICES}
    assert held == {ONE.lease: 1, TWO.lease: 0}
    assert lost == {ONE.lease: 0, TWO.lease: 1}


def _take(turns: Turns, cancel: threading.Event) -> None:
    with suppress(Interrupted), turns.take(Resources(0), cancel):
        pass


class Judge:
    """A strategy that makes what a script says."""

    def __init__(self, store: Store, make: Callable[[str], Execution]) -> None:
        self._store = store
        self._make = make

    def hermetic(self) -> bool:
        return True

    def run(self, prepared: Prepared, cancel: threading.Event) -> Execution:
        return self._make(prepared.action.argv[-1])


def test_a_node_counts_what_it_judges_and_refuses(tmp_path: Path) -> None:
    with Store.open(tmp_path / "node") as store:

        def make(name: str) -> Execution:
            if name == "tool":
                return Execution(ActionResult(7))
            if name == "broken":
                raise InfraError(Reason.NO_RESOURCES, "no memory")
            verdict = store.cas.put(b'{"schema":1,"gate":"compile","verdict":"FAIL"}')
            return Execution(ActionResult(0, (OutputFile("verdict.json", verdict),)))

        turns = Turns(2, MemoryLeases(), {})
        metrics = Metrics(OFFER, turns.load)
        outputs = ("verdict.json",)
        with a_fleet(tmp_path, Judge(store, make), store, watcher=metrics) as fixture:
            fleet = fixture.fleet()
            gate = command("gate", gate="compile", outputs=outputs)
            fleet.run(fixture.prepared(gate), NEVER)
            fleet.run(fixture.prepared(command("tool")), NEVER)
            for refused in (command("broken"), command("far", resources=FAR, platform=ELSEWHERE)):
                with pytest.raises(InfraError):
                    fleet.run(fixture.prepared(refused), NEVER)
        with serving(metrics, "127.0.0.1", 0) as url:
            found = numbers(url)

    def total(code: int, outcome: str) -> float:
        return found[f"kabuild_node_actions_total code={code} outcome={outcome}"]

    assert (total(0, "FAIL"), total(10, "failed")) == (1, 1)
    assert (total(36, "infra"), total(73, "refused")) == (3, 3)  # each tried three times
    assert found["kabuild_node_run_seconds_count kind=cpu"] == 2
    assert found["kabuild_node_input_files_total cache=miss"] > 0


def test_an_address_in_use_is_named() -> None:
    metrics = Metrics(OFFER, Turns(1, MemoryLeases(), {}).load)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(InfraError, match=rf"--metrics: nothing can listen at 127.0.0.1:{port}"):
            serving(metrics, "127.0.0.1", port).__enter__()
