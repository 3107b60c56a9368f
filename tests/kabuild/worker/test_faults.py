"""What goes wrong between a build and a worker ends in a right result, or in a clear failure."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kabuild.base.errors import InfraError, Interrupted, Reason
from kabuild.execution.wire import report_key
from kabuild.model.digest import Digest
from tests.testkit.actions import command
from tests.testkit.fleet import require_fleet

require_fleet()

import grpc

from tests.testkit.scripted import ACTION, DATA, NOW, TIMED, Fleet, a_scripted_fleet
from tests.testkit.signers import trusted
from tests.testkit.workers import NODE

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with a_scripted_fleet(tmp_path) as fleet:
        yield fleet


def once(*codes: grpc.StatusCode) -> Callable[[int], grpc.StatusCode | None]:
    return lambda number: codes[number] if number < len(codes) else None


CALLS = ("GetCapabilities", "GetActionResult", "FindMissingBlobs", "BatchUpdateBlobs", "Execute")


@pytest.mark.parametrize("code", [UNAVAILABLE, EXHAUSTED])
def test_calls_that_fail_for_a_while_cost_time(fleet: Fleet, code: grpc.StatusCode) -> None:
    for method in (*CALLS, "BatchReadBlobs"):
        fleet.fixture.server.faults[method] = once(code)

    assert fleet.is_right()
    assert all(fleet.fixture.server.calls[method] > 1 for method in CALLS)


@pytest.mark.parametrize("method", ["GetActionResult", "BatchUpdateBlobs", "Execute"])
def test_a_call_that_is_refused_is_a_clear_failure(fleet: Fleet, method: str) -> None:
    fleet.fixture.server.faults[method] = lambda _: grpc.StatusCode.PERMISSION_DENIED

    error = fleet.failure()

    assert error.reason is Reason.REMOTE_REFUSED
    assert "//t:a was not run by grpc://fleet: " in error.message
    assert "PERMISSION_DENIED" in error.message
    assert not fleet.strategy.ran


def test_a_report_of_any_size_is_not_fetched(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server chooses it: nothing is signed yet."""
    monkeypatch.setattr("kabuild.execution.fleet.MOST_MESSAGE", 10)

    error = fleet.failure()

    assert error.reason is Reason.REMOTE_REFUSED
    assert "a part of its report has" in error.message
    assert not fleet.fixture.server.calls["BatchReadBlobs"]


def test_a_server_without_room_is_a_clear_failure(fleet: Fleet) -> None:
    """As one whose disk is full: it refuses each upload."""
    fleet.fixture.server.faults["BatchUpdateBlobs"] = lambda _: EXHAUSTED

    error = fleet.failure(endpoint=fleet.fixture.server.endpoint(retries=0), away=0.0)

    assert error.reason is Reason.REMOTE_UNAVAILABLE
    assert "BatchUpdateBlobs: RESOURCE_EXHAUSTED" in error.message
    assert not fleet.strategy.ran


def test_a_wrong_instance_is_a_clear_failure(fleet: Fleet) -> None:
    server = fleet.fixture.server

    error = fleet.failure(endpoint=replace(server.endpoint(), instance="none"))

    assert error.reason is Reason.REMOTE_REFUSED
    assert "no instance 'none'" in error.message
    assert fleet.is_right()


@pytest.mark.parametrize("code", [UNAVAILABLE, EXHAUSTED])
def test_an_engine_that_is_overloaded_is_asked_again(fleet: Fleet, code: grpc.StatusCode) -> None:
    fleet.fixture.engine.refuse = lambda n: (int(code.value[0]), "busy") if n < 2 else None

    assert fleet.is_right()


def test_streams_that_are_cut_are_taken_up_again(fleet: Fleet) -> None:
    """The action itself goes on: it runs once."""
    server = fleet.fixture.server

    def cut(cancel: threading.Event) -> None:
        fleet.fixture.engine.cut()
        while not server.calls["WaitExecution"] and not cancel.wait(0.01):
            pass

    fleet.strategy.during = cut

    assert fleet.is_right()
    assert fleet.strategy.ran == 1
    assert server.calls["Execute"] == 1


def test_a_server_that_forgets_everything_is_asked_again(fleet: Fleet) -> None:
    def forget(_: threading.Event) -> None:
        if fleet.strategy.ran == 1:
            fleet.fixture.engine.hang_up()

    fleet.strategy.during = forget

    assert fleet.is_right()
    assert fleet.fixture.server.calls["Execute"] >= 2


def test_a_server_that_cannot_wait_is_asked_again(fleet: Fleet) -> None:
    server = fleet.fixture.server
    server.faults["WaitExecution"] = lambda _: grpc.StatusCode.UNIMPLEMENTED
    fleet.strategy.during = lambda _: fleet.fixture.engine.cut()

    assert fleet.is_right()


def test_a_blob_that_is_evicted_before_the_run_is_sent_again(fleet: Fleet) -> None:
    def evict(number: int) -> None:
        if number == 0:
            fleet.fixture.server.blobs.clear()

    fleet.fixture.engine.refuse = evict

    assert fleet.is_right()


def test_blobs_that_are_always_evicted_are_a_clear_failure(fleet: Fleet) -> None:
    fleet.fixture.engine.refuse = lambda _: fleet.fixture.server.blobs.clear()

    error = fleet.failure()

    assert error.reason is Reason.REMOTE_MISSING
    assert "MISSING blobs/" in error.message


@pytest.mark.parametrize("loss", ["gone", "damaged"])
def test_an_output_that_is_lost_is_made_again(fleet: Fleet, loss: str) -> None:
    """Also where the server remembers a result that it no longer has."""
    blobs, own = fleet.fixture.server.blobs, fleet.fixture.store
    (file,) = fleet.run().result.files
    (own.root / "cas" / file.digest.hash[:2] / file.digest.hash).unlink()
    if loss == "gone":
        del blobs[file.digest.hash]
    else:
        blobs[file.digest.hash] = b"M" + DATA[1:]
    assert fleet.strategy.ran == 1

    assert fleet.is_right()
    assert fleet.strategy.ran == 2


def _killed(fleet: Fleet, times: int) -> Callable[[threading.Event], None]:
    def kill(cancel: threading.Event) -> None:
        if fleet.strategy.ran <= times:
            for job in fleet.fixture.engine.jobs.values():
                if job.process and job.process.poll() is None:
                    job.process.send_signal(signal.SIGKILL)
            assert cancel.wait(120), "the node does not notice that the program is gone"
            raise Interrupted(Reason.INTERRUPTED, "cancelled")

    return kill


def test_a_worker_that_is_killed_is_replaced(fleet: Fleet) -> None:
    fleet.strategy.during = _killed(fleet, 1)

    assert fleet.is_right()
    assert fleet.strategy.ran == 2


def test_a_timed_action_is_not_repeated_after_a_kill(fleet: Fleet) -> None:
    """It may have broken the device, and would break the next."""
    fleet.strategy.during = _killed(fleet, 1)

    error = fleet.failure(TIMED)

    assert error.reason is Reason.NODE_FAILED
    assert fleet.strategy.ran == 1


def test_a_node_tidies_its_store_after_each_action(fleet: Fleet) -> None:
    assert fleet.is_right()
    assert fleet.is_right(command("b"))

    assert fleet.fixture.tidied == [1, 2]


def test_workers_that_always_fail_are_a_clear_failure(fleet: Fleet) -> None:
    fleet.strategy.during = _killed(fleet, 99)

    assert fleet.failure().reason is Reason.NODE_FAILED
    assert fleet.strategy.ran == 3


def test_a_bug_on_the_node_is_a_clear_failure(fleet: Fleet) -> None:
    def fail(_: threading.Event) -> None:
        raise RuntimeError("what a day")

    fleet.strategy.during = fail

    assert "a bug of kabuild: RuntimeError: what a day" in fleet.failure().message


@pytest.mark.parametrize(
    ("said", "is_full"),
    [
        ("OutOfSpaceException exception thrown at [lrulocalcas.cpp:440]", True),
        ("write(): No space left on device", True),
        ("the runner ended", False),
    ],
)
def test_a_full_disk_of_a_worker_is_named(fleet: Fleet, said: str, is_full: bool) -> None:
    fleet.fixture.engine.refuse = lambda _: (13, said)

    error = fleet.failure(away=0.0)

    assert f"INTERNAL: {said}" in error.message
    assert ("free disk space on the workers' machines" in error.hint) is is_full


def test_an_action_cancelled_on_the_server_is_no_verdict(fleet: Fleet) -> None:
    fleet.fixture.engine.refuse = lambda _: (1, "an operator did it")

    error = fleet.failure()

    assert error.reason is Reason.REMOTE_REFUSED
    assert "it was cancelled on the server: an operator did it" in error.message


def test_an_action_that_no_worker_takes_names_the_properties(fleet: Fleet) -> None:
    engine = fleet.fixture.engine
    engine.queued.set()

    error = fleet.failure(queued=0.3, pools={"cpu": {"pool": "nobody"}})

    assert "(pool=nobody): no worker took the action in 0.3 s" in error.message
    assert all(job.cancelled for job in engine.jobs.values())
    assert fleet.fixture.server.calls["CancelOperation"] == 1


def test_a_build_that_is_stopped_cancels_what_runs(fleet: Fleet) -> None:
    stop = threading.Event()
    seen = threading.Event()

    def wait(cancel: threading.Event) -> None:
        stop.set()
        if cancel.wait(120):
            seen.set()
        raise Interrupted(Reason.INTERRUPTED, "cancelled")

    fleet.strategy.during = wait
    with pytest.raises(Interrupted):
        fleet.fixture.fleet().run(fleet.fixture.prepared(ACTION), stop)

    assert seen.wait(120), "the action goes on without anybody who waits for it"


def test_a_server_that_is_gone_ends_the_rest_at_once(fleet: Fleet) -> None:
    client = fleet.fixture.fleet(endpoint=fleet.fixture.server.endpoint(retries=0), away=0.0)
    prepared = fleet.fixture.prepared(ACTION)
    client.run(prepared, NOW)
    fleet.fixture.server.close()
    for name in "bc":
        with pytest.raises(InfraError) as caught:
            client.run(fleet.fixture.prepared(command(name)), NOW)
        assert caught.value.reason is Reason.REMOTE_UNAVAILABLE


@pytest.mark.parametrize("method", ["GetActionResult", "BatchUpdateBlobs"])
def test_a_server_that_is_slow_costs_one_timeout(fleet: Fleet, method: str) -> None:
    server = fleet.fixture.server
    server.slow = {method}

    error = fleet.failure(endpoint=server.endpoint(timeout=2.5, retries=3))

    assert error.reason is Reason.REMOTE_UNAVAILABLE
    assert f"{method}: DEADLINE_EXCEEDED" in error.message
    assert server.calls[method] == 1


def test_a_mere_cache_is_named_as_such(fleet: Fleet) -> None:
    fleet.fixture.server.engine = None

    error = fleet.failure()

    assert "the server executes nothing" in error.message
    assert "--remote_cache" in error.hint


def test_a_result_of_an_unknown_node_does_not_count(fleet: Fleet) -> None:
    error = fleet.failure(keys=trusted("somebody"))

    assert "a worker's result does not count: it is signed with an unknown key" in error.message
    assert "trusted_keys" in error.hint
    assert fleet.is_right(keys=trusted("somebody", NODE))


def test_a_result_of_another_action_does_not_count(fleet: Fleet) -> None:
    """Nor does a run that was remembered stand for a fresh one, nor a failure for a result."""
    fixture = fleet.fixture
    told: list[bytes] = []

    def swap(_: object, result: Any) -> None:
        told.append(bytes(result.SerializeToString()))
        result.ParseFromString(told[0])

    fixture.engine.after = swap
    client = fixture.fleet()
    prepared = fixture.prepared(ACTION)
    client.run(prepared, NOW)
    for other in (fixture.prepared(command("b")), replace(prepared, fresh="1")):
        with pytest.raises(InfraError) as caught:
            client.run(other, NOW)
        assert "it is changed after signing" in caught.value.message


def test_a_forged_result_in_the_servers_memory_is_made_again(fleet: Fleet) -> None:
    results = fleet.fixture.server.results
    assert fleet.is_right()
    (mine,) = results
    assert fleet.is_right(ACTION)
    fleet.run(command("b"))
    (others,) = results.keys() - {mine}
    results[mine] = results[others]

    assert fleet.is_right()
    assert fleet.strategy.ran == 3


def test_nonsense_is_a_clear_failure(fleet: Fleet) -> None:
    fleet.fixture.engine.after = lambda _, result: result.output_directories.pop()

    assert "a worker of the fleet failed: exit code 0, without a message" in fleet.failure().message


def test_a_key_that_signs_for_something_else_does_not_count() -> None:
    """The signature of an end that is not remembered is that of nobody's key."""
    key = Digest.of(b"key")
    ends = [
        report_key(key, fresh, fault, remembered=remembered)
        for fresh in ("", "1")
        for fault in ("", "timed out")
        for remembered in (True, False)
    ]
    assert len({*ends}) == 8
    assert ends[0] == key
    assert key not in ends[1:]
