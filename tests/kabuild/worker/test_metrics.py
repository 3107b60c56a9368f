"""A node's numbers, as Prometheus reads them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
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
from tests.testkit.exposition import problems
from tests.testkit.workers import a_fleet

NEVER = threading.Event()
ONE, TWO = (Device("cuda", n, f"GPU-{n}", "sm_90") for n in range(2))
OFFER = Offer({CPU.name: CPU}, Devices("cuda", (ONE, TWO)), {}, 4)
DEVICES = (ONE.lease, TWO.lease)
EMPTY = Directory({}, {})
FAR, ELSEWHERE = Resources(1, "cuda"), Platform("cuda", (("arch", "sm_90"),))


def numbers(url: str) -> dict[str, float]:
    """Samples by name, with their labels as Prometheus writes them."""
    return {
        sample.name + "".join(f" {k}={v}" for k, v in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page(url))
        for sample in family.samples
    }


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=120) as answer:
        text: str = answer.read().decode()
        return text


ODD = 'cuda "a\\b"\n1'


@pytest.fixture(scope="module")
def exposed() -> str:
    """The page of a node that has done something of each kind, on a device with an odd name."""
    device = Device("cuda", 0, ODD, "sm_90")
    metrics = Metrics(
        replace(OFFER, devices=Devices("cuda", (device,))), Turns(4, MemoryLeases(), {}).load
    )
    metrics.took_in(Intake(EMPTY, found=7, new=2))
    metrics.ended(Ended(0, "PASS", "timed", waited=0.2, ran=3.0))
    metrics.ended(Ended(72, "refused"))
    with serving(metrics, "127.0.0.1", 0) as url:
        return page(url)


def test_every_number_has_a_unit_a_type_and_a_help_text(exposed: str) -> None:
    assert problems(exposed) == []


def test_labels_are_escaped(exposed: str) -> None:
    families = text_string_to_metric_families(exposed)
    devices = {sample.labels.get("device") for family in families for sample in family.samples}

    assert f"cuda-{ODD}" in devices


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("# TYPE kabuild_node_cpu_slots gauge\n", "", "kabuild_node_cpu_slots: no TYPE"),
        ("CPU slots that the node offers.", "", "kabuild_node_cpu_slots: no HELP"),
        ("_cpu_slots", "_cpu", "kabuild_node_cpu: no unit"),
        ("_actions_total", "_actions", "kabuild_node_actions: counters end in _total"),
        ('_info{platforms="cpu:x86_64",version="0.1.0"} 1', "_info 2", "neither 0 nor 1"),
        ("# TYPE kabuild_node_cpu", "# TYPE kabuild_node_info gauge\n# TYPE x", "TYPE twice"),
    ],
)
def test_a_badly_described_number_would_be_found(
    exposed: str, right: str, wrong: str, problem: str
) -> None:
    assert right in exposed

    assert problem in "\n".join(problems(exposed.replace(right, wrong)))


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool: Debian's prometheus has it")
def test_promtool_has_no_objection(exposed: str) -> None:
    for text, code in ((exposed, 0), (exposed.replace("_actions_total", "_actions"), 3)):
        argv = ["promtool", "check", "metrics"]
        assert subprocess.run(argv, input=text.encode(), check=False).returncode == code


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
    assert found["kabuild_node_cpu_slots"] == 4


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

    assert (during["kabuild_node_running_actions"], during["kabuild_node_queued_actions"]) == (1, 1)
    assert (after["kabuild_node_running_actions"], after["kabuild_node_queued_actions"]) == (1, 0)
    assert lease == ONE.lease
    held = {device: during[f"kabuild_node_device_leased device={device}"] for device in DEVICES}
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
