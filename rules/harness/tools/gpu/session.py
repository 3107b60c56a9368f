"""The judge's own use of the device: what it computes there, and what it knows of it."""

from __future__ import annotations

import torch
from base.program import MachineFault
from torch import Tensor

from gpu.driver import DEVICE, NoDevice, driver

_BUILDS = {"cuda": ("NVIDIA", torch.version.cuda), "rocm": ("AMD", torch.version.hip)}
_EVICTED = 2  # times the cache's size are written to take everything else out of it
_FALLBACK_CACHE = 64 << 20
_INFINITY_CACHE = 256 << 20
"""Of AMD's largest processors: it lies behind the cache that their runtime tells of."""

_FASTEST_MEMORY = 3.0  # caches are faster than the memory behind them
_MOST_OPERATIONS = 1 << 15  # of a multiprocessor in a cycle: sparse 8-bit matrices, twice


def start(platform: str) -> None:
    """Have this process compute on the platform's device: tensors are made there from now on.

    Raises NoDevice, and MachineFault for a device that does not answer.
    """
    maker, built = _BUILDS[platform]
    if not built:
        raise NoDevice(platform, f"PyTorch {torch.__version__} is not built for {maker}'s devices")
    driver()
    torch.set_default_device(f"cuda:{DEVICE}")
    check()


def check() -> None:
    """Raise MachineFault where the device no longer works for the judge itself."""
    try:
        sound = int(torch.ones(8, device=_device()).sum().item()) == 8
        torch.cuda.synchronize()
    except RuntimeError as error:
        raise MachineFault(f"the device is lost: {error}") from error
    if not sound:
        raise MachineFault("the device computes wrong sums")


def cache_bytes() -> int:
    """Bytes of the device's last-level cache."""
    told = getattr(torch.cuda.get_device_properties(DEVICE), "L2_cache_size", _FALLBACK_CACHE)
    return max(int(told), _INFINITY_CACHE if torch.version.hip else 0)


def memory_bytes() -> int:
    """Bytes of the device's memory."""
    return int(torch.cuda.get_device_properties(DEVICE).total_memory)


def ceilings() -> tuple[float, float]:
    """Bytes and operations a second that the device of this process cannot exceed."""
    known = torch.cuda.get_device_properties(DEVICE)
    memory_hz = float(getattr(known, "memory_clock_rate", 0)) * 1e3
    memory = 2.0 * memory_hz * float(getattr(known, "memory_bus_width", 0)) / 8
    clock_hz = float(getattr(known, "clock_rate", 0)) * 1e3
    return memory * _FASTEST_MEMORY, clock_hz * known.multi_processor_count * _MOST_OPERATIONS


def evict() -> None:
    """Fill the last-level cache with what nobody needs, and wait until the device is idle."""
    scratch: Tensor = torch.empty(_EVICTED * cache_bytes(), dtype=torch.uint8, device=_device())
    scratch.fill_(1)
    torch.cuda.synchronize()


def _device() -> torch.device:
    return torch.device("cuda", DEVICE)
