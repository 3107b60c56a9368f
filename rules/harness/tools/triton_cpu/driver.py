"""A Triton driver for the CPU, so that autotuning and benchmarking work under the interpreter."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from triton.backends.compiler import GPUTarget

# Candidates size grids by the number of multiprocessors.
_PROPERTIES = {
    "multiprocessor_count": 4,
    "max_shared_mem": 65536,
    "max_num_regs": 65536,
    "warpSize": 64,
    "mem_clock_rate": 1_000_000,
    "mem_bus_width": 64,
    "sm_clock_rate": 1_000_000,
}


class CpuEvent:
    """A device event whose device is the host: it records the monotonic clock."""

    def __init__(self, *, enable_timing: bool = True) -> None:
        self.enable_timing = enable_timing
        self._seconds = 0.0

    def record(self) -> None:
        """Take the time now."""
        self._seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Do nothing: all work runs on the host."""

    def elapsed_time(self, end: CpuEvent) -> float:
        """Milliseconds from this event to `end`."""
        return (end._seconds - self._seconds) * 1e3


class CpuDeviceInterface:
    """Stands in for torch.cuda in triton.testing."""

    Event = CpuEvent

    @staticmethod
    def synchronize() -> None:
        """Do nothing: all work runs on the host."""

    @staticmethod
    def current_device() -> int:
        """Give the index of the only device."""
        return 0


class CpuUtilities:
    """Device properties of the emulated device."""

    @staticmethod
    def get_device_properties(_device: int) -> dict[str, int]:
        """Give a fresh copy of the properties."""
        return dict(_PROPERTIES)


class CpuDriver:
    """The active driver under the interpreter: one device, the host."""

    utils = CpuUtilities()

    def is_active(self) -> bool:
        """Return True: the driver is always usable."""
        return True

    def get_current_target(self) -> GPUTarget:
        """A target that is neither `is_cuda` nor `is_hip`."""
        return GPUTarget("cpu", 0, 64)

    def get_current_device(self) -> int:
        """Give the index of the only device."""
        return 0

    def get_current_stream(self, _device: int = 0) -> int:
        """Give the null stream."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """Give the device on which tensors live."""
        return torch.device("cpu")

    def get_device_interface(self) -> type[CpuDeviceInterface]:
        """Give the stand-in for torch.cuda."""
        return CpuDeviceInterface

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Give a buffer to clear between timed runs; the host's caches are left alone."""
        return torch.empty(1)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Clear the buffer that stands for the last-level cache."""
        cache.zero_()

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Give the autotuner's clock."""
        return run_once


def run_once(call: Callable[[], Any], quantiles: Sequence[float] = (0.5,), **_: Any) -> list[float]:
    """Run a configuration once, and report the same time (ms) for all.

    Times under an interpreter say nothing about a GPU, and a choice by them would differ from run
    to run. With equal times every configuration runs, and the autotuner takes the first.
    """
    call()
    return [1.0] * len(quantiles)
