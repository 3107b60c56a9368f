"""The judge's own use of the device, and the device's properties."""

from __future__ import annotations

import torch
from base.program import MachineFault
from torch import Tensor

from gpu.driver import DEVICE, NoDevice, accelerator, choose, chosen, driver

_EVICTED = 2  # times the cache's size are written to evict everything else
_FALLBACK_CACHE = 64 << 20
_FASTEST_MEMORY = 3.0  # times the speed of memory: caches are faster than the memory behind them
_WHOLE_BLOCKS = "max_split_size_mb:512"
_MOST_OPERATIONS = 1 << 15  # per multiprocessor and cycle: twice the rate of sparse 8-bit matrices


def start(platform: str) -> None:
    """Make this process compute on the platform's device: tensors are made there from now on.

    Raises NoDevice, and MachineFault if the device does not answer.
    """
    used = choose(platform)
    if not getattr(torch.version, used.torch_version, None):
        build = f"PyTorch {torch.__version__}"
        raise NoDevice(platform, f"{build} is not built for {used.maker}'s devices")
    driver()
    _keep_blocks_whole()
    compute_there()
    check()


def _keep_blocks_whole() -> None:
    """Let no small tensor take a part of a block that a large one has left.

    The rest of such a block fits no other large tensor, and is not given back either.
    """
    accelerator().memory_allocated()  # old versions of PyTorch have no settings before that
    known = getattr(torch._C, "_accelerator_setAllocatorSettings", None)  # noqa: SLF001
    settings = known or accelerator().memory._set_allocator_settings  # noqa: SLF001
    settings(_WHOLE_BLOCKS)


def compute_there() -> None:
    """Make this thread create its tensors on the device."""
    torch.set_default_device(_device())


def check() -> None:
    """Raise MachineFault if the device no longer works for the judge itself."""
    try:
        sound = int(torch.ones(8, device=_device()).sum().item()) == 8
        accelerator().synchronize()
    except RuntimeError as error:
        raise MachineFault(f"the device is lost: {error}") from error
    if not sound:
        raise MachineFault("the device computes wrong sums")


def cache_bytes() -> int:
    """Bytes of the device's last-level cache."""
    told = getattr(accelerator().get_device_properties(DEVICE), "L2_cache_size", _FALLBACK_CACHE)
    return max(int(told), chosen().least_cache_bytes)


def memory_bytes() -> int:
    """Bytes of the device's memory."""
    return int(accelerator().get_device_properties(DEVICE).total_memory)


def free_bytes() -> int:
    """Free bytes of the device's memory."""
    free, _ = accelerator().mem_get_info()
    return int(free)


def give_back() -> None:
    """Return the memory that this process's allocator keeps in reserve to the device."""
    accelerator().empty_cache()


def memory_speed() -> float:
    """Bytes a second of the device's memory, by its clock and width; 0 if it does not tell them."""
    known = accelerator().get_device_properties(DEVICE)
    memory_hz = float(getattr(known, "memory_clock_rate", 0)) * 1e3
    return 2.0 * memory_hz * float(getattr(known, "memory_bus_width", 0)) / 8


def ceilings() -> tuple[float, float]:
    """Bytes and operations a second that the device of this process cannot exceed."""
    known = accelerator().get_device_properties(DEVICE)
    clock_hz = float(getattr(known, "clock_rate", 0)) * 1e3
    operations = clock_hz * known.multi_processor_count * _MOST_OPERATIONS
    return memory_speed() * _FASTEST_MEMORY, operations


def evict() -> None:
    """Fill the last-level cache with unused data, and wait until the device is idle.

    The data is written and then read: what was only written would have to be stored to memory
    first, at the cost of whoever uses the cache next.
    """
    count = _EVICTED * cache_bytes() // 4
    scratch: Tensor = torch.empty(count, dtype=torch.int32, device=_device())
    scratch.fill_(1)
    scratch.amax()
    accelerator().synchronize()


def _device() -> torch.device:
    return torch.device(chosen().torch_device, DEVICE)
