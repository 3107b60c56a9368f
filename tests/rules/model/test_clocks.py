"""The clock of a device, on a device that a test makes up."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[3]

sys.path.insert(0, str(ROOT / "rules/model/tools"))

from modelled.clocks import DeviceClock, HostClock, clock_of
from modelled.user_model import device_of


class Queue:
    """A device whose time passes by a millisecond in each call."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waited = 0

    def Event(self, *, enable_timing: bool) -> Any:
        assert enable_timing
        event = SimpleNamespace()
        event.record = lambda: setattr(event, "at", self.now)
        event.elapsed_time = lambda last: last.at - event.at
        return event

    def synchronize(self) -> None:
        self.waited += 1

    def call(self) -> int:
        self.now += 1.0
        return 7


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    made = Queue()
    monkeypatch.setattr(torch, "get_device_module", lambda _: made)
    monkeypatch.setattr(torch, "randn", lambda *_, **__: torch.ones(2, 2))
    return made


def test_a_device_is_timed_by_its_own_events(queue: Queue) -> None:
    clock = clock_of("cuda")

    seconds, result = clock.seconds(queue.call)

    assert isinstance(clock, DeviceClock)
    assert seconds == pytest.approx(1e-3)
    assert result == 7
    assert queue.waited == 1


def test_a_whole_call_ends_when_the_device_is_idle(queue: Queue) -> None:
    assert clock_of("cuda").whole(queue.call) > 0
    assert queue.waited == 2


def test_the_platform_names_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("far_device")
    module.PLATFORM = SimpleNamespace(torch_device="far")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)

    assert device_of("far_device") == "far"
    assert device_of("") == "cpu"
    assert isinstance(clock_of("cpu"), HostClock)
