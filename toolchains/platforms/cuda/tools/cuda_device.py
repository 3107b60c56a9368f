"""NVIDIA's devices, as the judge and its runners use them."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from base.device_platform import DevicePlatform, DriverLibrary

_MANAGEMENT = "libnvidia-ml.so.1"
_TRITON = "triton.backends.nvidia.driver"
_SM_CLOCK, _MEMORY_CLOCK, _ON_GPU = 1, 2, 0


def _state(bus: bytes) -> Mapping[str, int]:
    """``sm_mhz``, ``memory_mhz``, ``celsius``, ``milliwatts`` and ``slowed``.

    ``slowed`` has the bits of ``nvmlClocksEventReasons``: 1 is idle, 4 the power cap, 8 and above
    are slowdowns. Empty where the management library is not installed.
    """
    found = _handle(bus)
    if found is None:
        return {}
    library, handle = found
    made: dict[str, int] = {}
    for name, function, arguments in (
        ("sm_mhz", "nvmlDeviceGetClockInfo", (_SM_CLOCK,)),
        ("memory_mhz", "nvmlDeviceGetClockInfo", (_MEMORY_CLOCK,)),
        ("celsius", "nvmlDeviceGetTemperature", (_ON_GPU,)),
        ("milliwatts", "nvmlDeviceGetPowerUsage", ()),
        ("slowed", "nvmlDeviceGetCurrentClocksThrottleReasons", ()),
    ):
        value = ctypes.c_ulonglong(0)
        if not getattr(library, function)(handle, *arguments, ctypes.byref(value)):
            made[name] = value.value
    return made


@cache
def _handle(bus: bytes) -> tuple[ctypes.CDLL, ctypes.c_void_p] | None:
    """The management library, and its name for the device at a PCI address."""
    handle = ctypes.c_void_p()
    try:
        library = ctypes.CDLL(_MANAGEMENT)
    except OSError:
        return None
    if library.nvmlInit_v2():
        return None
    if library.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(handle)):
        return None
    return library, handle


def _launcher(types: Sequence[str]) -> None:
    driver: Any = importlib.import_module(_TRITON)
    parameters = {index: f"{each}i8" if each == "*" else each for index, each in enumerate(types)}
    driver.compile_module_from_src(
        src=driver.make_launcher({}, parameters, None),
        name="__triton_launcher",
        library_dirs=driver.library_dirs(),
        include_dirs=driver.include_dirs,
        libraries=driver.libraries,
    )


PLATFORM = DevicePlatform(
    name="cuda",
    maker="NVIDIA",
    driver=DriverLibrary(("libcuda.so.1",)),
    torch_device="cuda",
    torch_version="cuda",
    out_of_memory=("CUDA out of memory", "CUDA error: out of memory"),
    device_files=("nvidia*",),
    variables=("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    caches={"CUDA_CACHE_PATH": "cuda"},
    gated=True,
    triton_utilities=(_TRITON, "CudaUtils"),
    triton_launcher=_launcher,
    state=_state,
)
