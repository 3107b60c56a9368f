"""Actions on a fleet with real sandboxes: results are those of a local run, bit by bit."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.base.errors import InfraError, Reason
from kabuild.execution import LocalStrategy
from kabuild.model.action import Action, Limits, Resources, Toolchain
from kabuild.model.platform import Platform
from kabuild.sandbox import Spawner
from kabuild.store import Store
from tests.testkit.actions import command, gate
from tests.testkit.fleet import require_fleet

require_fleet()

from tests.testkit.workers import Fixture, a_fleet

NOW = threading.Event()


@pytest.fixture
def fleet(tmp_path: Path, spawner: Spawner) -> Iterator[Fixture]:
    with (
        Store.open(tmp_path / "node") as store,
        a_fleet(tmp_path, LocalStrategy(store, spawner), store) as fixture,
    ):
        yield fixture


def shell(script: str, **rest: object) -> Action:
    return command("a", "/bin/sh", "-c", script, **rest)  # type: ignore[arg-type]


SCRIPTS = {
    "files, a directory, streams": "echo hi; echo there >&2; mkdir -p out/d/e; echo x >out/d/e/f; "
    "cp name out/result; chmod +x out/result",
    "no output": "exit 0",
    "a failure": "echo bad >&2; echo some >out/result; exit 7",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_result_is_that_of_a_local_run(fleet: Fixture, spawner: Spawner, script: str) -> None:
    prepared = fleet.prepared(shell(script, outputs=("result", "d")))

    there = fleet.fleet().run(prepared, NOW)

    assert there == LocalStrategy(fleet.store, spawner).run(prepared, NOW)
    assert not fleet.store.cas.missing(file.digest for file in there.result.files)


def test_a_timeout_is_that_of_a_local_run(fleet: Fixture) -> None:
    """It is data, and nothing that a server may remember."""
    prepared = fleet.prepared(shell("sleep 60", limits=Limits(timeout=0.2)))

    ends = [fleet.fleet().run(prepared, NOW) for _ in range(2)]

    assert [end.fault for end in ends] == ["timed out after 0.2 s"] * 2
    assert len(fleet.engine.ran) == 2


def test_a_node_says_of_each_action_how_it_ended(fleet: Fixture) -> None:
    good, bad = (fleet.prepared(shell(script)) for script in ("echo >out/result", "exit 7"))
    for prepared in (good, bad):
        fleet.fleet().run(prepared, NOW)

    ends = [f"action {p.key.hash[:16]}" for p in (good, bad)]
    times = r" in \d+\.\d s( after \d+\.\d s of waiting)?"
    patterns = [rf"{ends[0]}: done{times} \(exit code 0\)", rf"{ends[1]}: failed{times} .*10\)"]
    assert all(map(re.fullmatch, patterns, fleet.said)), fleet.said


def test_equal_actions_run_once_whatever_they_are_called(fleet: Fixture) -> None:
    one = fleet.prepared(shell("echo x >out/result"))
    other = replace(one, action=replace(one.action, label=one.action.label.sibling("b")))

    first = fleet.fleet().run(one, NOW)
    again = fleet.fleet().run(other, NOW)

    assert first == again
    assert len(fleet.engine.ran) == 1


def test_a_fresh_run_is_never_a_remembered_one(fleet: Fixture) -> None:
    prepared = fleet.prepared(shell("head -c8 /dev/urandom >out/result"))
    client = fleet.fleet()

    known = client.run(prepared, NOW)
    results = [client.run(replace(prepared, fresh=name), NOW) for name in ("1", "2")]

    assert client.run(prepared, NOW) == known
    assert len({end.result.files for end in (known, *results)}) == 3
    assert len(fleet.engine.ran) == 3


def test_a_gate_without_a_verdict_is_not_remembered(fleet: Fixture) -> None:
    """The machine failed: another run may judge it."""
    prepared = fleet.prepared(gate("a.perf", "/bin/sh", "-c", "exit 0"))

    for _ in range(2):
        assert not fleet.fleet().run(prepared, NOW).result.files

    assert len(fleet.engine.ran) == 2


def test_routing_reaches_the_engine_and_no_key(fleet: Fixture) -> None:
    pools = {"cpu timed": {"pool": "quiet"}, "cpu": {"pool": "cpu"}}
    timed = Resources(cpus=0, lease="cpu", timed=True)
    client = fleet.fleet(pools=pools)
    for needs in (Resources(), timed):
        prepared = fleet.prepared(shell(f"echo {needs.cpus} >out/result", resources=needs))
        client.run(prepared, NOW)

    assert fleet.engine.properties == [{"pool": "cpu"}, {"pool": "quiet"}]


def _failure(fleet: Fixture, action: Action) -> InfraError:
    with pytest.raises(InfraError) as caught:
        fleet.fleet().run(fleet.prepared(action), NOW)
    return caught.value


def test_another_platform_is_refused(fleet: Fixture) -> None:
    other = Platform("cpu", (("arch", "x86_64"), ("device", "a faster one")))

    error = _failure(fleet, shell("exit 0", platform=other))

    assert error.reason is Reason.NODE_FAILED
    assert "device is '', the action is for 'a faster one'" in error.message
    refused = ": refused (exit code 73): cpu of this node differs"
    assert all(refused in line for line in fleet.said), fleet.said


def test_another_toolchain_is_refused(fleet: Fixture) -> None:
    tool = Toolchain("python", "python", b'{"version":"9"}', "/usr")

    error = _failure(fleet, shell("exit 0", toolchains=(tool,)))

    assert "this node lacks the toolchain 'python' with fingerprint" in error.message
    assert len(fleet.engine.ran) == 3, "it is tried on other workers"


def test_a_staged_tree_that_is_another_one_never_runs(fleet: Fixture) -> None:
    fleet.engine.before = lambda top: (top / "exec/name").write_text("another")

    error = _failure(fleet, shell("exit 0"))

    assert "the staged input root is" in error.message


def test_a_link_in_the_staged_tree_is_not_followed(fleet: Fixture) -> None:
    def link(top: Path) -> None:
        (top / "exec/name").unlink()
        (top / "exec/name").symlink_to("/etc/passwd")

    fleet.engine.before = link

    assert "exec/name is neither a file nor a directory" in _failure(fleet, shell("exit 0")).message


def test_what_is_no_action_of_ours_is_refused(fleet: Fixture) -> None:
    fleet.engine.before = lambda top: (top / "wire.json").write_text('{"schema":1}')

    assert "this is not an action of kabuild" in _failure(fleet, shell("exit 0")).message


def test_a_fleet_says_what_it_offers(fleet: Fixture) -> None:
    said = fleet.fleet().survey({}, NOW)

    assert b'"platforms":{"cpu":{"arch":"x86_64"}}' in said
