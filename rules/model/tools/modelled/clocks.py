"""The time of single operators, on a processor or on a device behind a queue."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

_COPIED, _COPIED_THERE = 1 << 26, 1 << 30
"""Bytes that are copied on a processor and on a device, far more than their caches hold."""

_SQUARE = 512
_REPEATS = 10
_TIMES = 8


class Clock(Protocol):
    """Measures calls."""

    def seconds(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """The time of one call, and what it returned."""

    def whole(self, call: Callable[[], Any]) -> float:
        """The time from a call until its results are there."""


class HostClock:
    """The clock of operators that have computed when they return."""

    def seconds(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """The time of one call, and what it returned."""
        began = time.perf_counter()
        result = call()
        return time.perf_counter() - began, result

    def whole(self, call: Callable[[], Any]) -> float:
        """The time of one call."""
        return self.seconds(call)[0]


class DeviceClock:
    """The clock of a device: events in its queue, with work before them.

    So what is measured is the device's time, and not how fast the host launches.
    """

    def __init__(self, device: str) -> None:
        self._device: Any = torch.get_device_module(device)
        self._filler = torch.randn(4096, 4096, device=device)

    def seconds(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """The device's time of one call, the mean of several, and what one returned."""
        result = call()
        first, last = (self._device.Event(enable_timing=True) for _ in range(2))
        torch.mm(self._filler, self._filler)
        first.record()
        for _ in range(_TIMES):
            call()
        last.record()
        self._device.synchronize()
        return first.elapsed_time(last) / 1e3 / _TIMES, result

    def whole(self, call: Callable[[], Any]) -> float:
        """The time from a call until the device is idle, as the host sees it."""
        self._device.synchronize()
        began = time.perf_counter()
        call()
        self._device.synchronize()
        return time.perf_counter() - began


def clock_of(device: str) -> Clock:
    """The clock of a device of PyTorch."""
    return HostClock() if device == "cpu" else DeviceClock(device)


def bandwidth(clock: Clock, device: str) -> float:
    """Bytes per second of a large copy."""
    size = _COPIED if device == "cpu" else _COPIED_THERE
    source = torch.ones(size // 4, device=device)
    target = torch.empty_like(source)
    times = [clock.seconds(lambda: target.copy_(source))[0] for _ in range(_REPEATS)]
    return 2 * size / min(times)


def throughput(clock: Clock, device: str, dtype: torch.dtype) -> float:
    """Operations per second of a large matrix product."""
    size = _SQUARE if device == "cpu" else 8 * _SQUARE
    square: Tensor = torch.ones(size, size, dtype=dtype, device=device)
    times = [clock.seconds(lambda: torch.mm(square, square))[0] for _ in range(_REPEATS)]
    return 2 * float(size) ** 3 / min(times)
