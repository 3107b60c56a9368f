"""Slots and devices of a node: nothing is handed out twice, and nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from kabuild.base.errors import DeviceError, Interrupted, Reason
from kabuild.model.action import Resources
from kabuild.worker.turns import Turns
from tests.testkit.execution import MemoryLeases

ONE, ALL = Resources(1), Resources(0)
DEVICE = Resources(1, "cuda", timed=True)
NEVER = threading.Event()


def background(body: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    return thread


def test_a_device_is_leased_to_one_at_a_time() -> None:
    """Two devices, six actions, four slots: MemoryLeases fails if one is handed out twice."""
    leases = MemoryLeases()
    turns = Turns(4, leases, {"cuda": ["cuda-0", "cuda-1"]})
    most, got = [0], []

    def run() -> None:
        with turns.take(DEVICE, NEVER) as lease:
            got.append(lease)
            most[0] = max(most[0], len(leases.held))

    threads = [background(run) for _ in range(6)]
    for thread in threads:
        thread.join(120)

    assert len(got) == 6
    assert {*got} <= {"cuda-0", "cuda-1"}
    assert most[0] <= 2
    assert not leases.held


def test_an_action_that_takes_all_slots_runs_alone_and_is_not_passed() -> None:
    turns = Turns(2, MemoryLeases(), {})
    order: list[str] = []
    first = threading.Event()

    def alone() -> None:
        with turns.take(ALL, NEVER):
            order.append("all")

    def later() -> None:
        with turns.take(ONE, NEVER):
            order.append("later")

    with turns.take(ONE, NEVER):
        waiting = [background(alone)]
        while not turns._line:
            first.wait(0.01)
        waiting.append(background(later))
        first.wait(0.05)
        assert order == []
    for thread in waiting:
        thread.join(120)
    assert order == ["all", "later"]


def test_who_waits_can_be_cancelled() -> None:
    leases = MemoryLeases({"cuda-0"})
    turns = Turns(1, leases, {"cuda": ["cuda-0"]})
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Interrupted), turns.take(DEVICE, cancel):
        pass
    with turns.take(ALL, NEVER), pytest.raises(Interrupted), turns.take(ONE, cancel):
        pass
    with turns.take(ALL, NEVER) as lease:
        assert lease == ""


def test_a_lost_device_is_not_used_again() -> None:
    turns = Turns(1, MemoryLeases(), {"cuda": ["cuda-0", "cuda-1"]})
    turns.withdraw("cuda-0")
    with turns.take(DEVICE, NEVER) as lease:
        assert lease == "cuda-1"
    turns.withdraw("cuda-1")

    with pytest.raises(DeviceError) as caught, turns.take(DEVICE, NEVER):
        pass

    assert caught.value.reason is Reason.NO_DEVICE
