"""NVIDIA's management library, as far as it is needed here: read only.

Its C interface is documented by NVIDIA and kept stable; functions ending in ``_v2`` and ``_v3``
are versions of one. A driver too old for one, or a container that may not, answers an error.

Not nvidia-ml-py: that opens the library by its name alone and once for the process, so it has no
devices where the driver's directory is not the loader's (containers, WSL, NixOS).
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

LIBRARY = "libnvidia-ml.so.1"

_TEXT_BYTES = 96
_MOST_PROCESSES = 1024


class Status(IntEnum):
    """``nvmlReturn_t``, where it makes a difference."""

    SUCCESS = 0
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    INSUFFICIENT_SIZE = 7
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15


class Clock(IntEnum):
    """``nvmlClockType_t``."""

    SM = 1
    MEMORY = 2


class NvmlError(Exception):
    """A function of the library failed; ``status`` is its code."""

    def __init__(self, function: str, status: int, text: str) -> None:
        super().__init__(f"{function}: {text}")
        self.status = status
        self.text = text


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used_memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Nvml:
    """An initialised library. Its functions may be called by several threads at once.

    Raises OSError where ``path`` is no library, NvmlError if there is no driver.
    """

    def __init__(self, path: str = LIBRARY) -> None:
        self._library = ctypes.CDLL(path)
        self._call("nvmlInit_v2")

    def driver(self) -> str:
        """The version of the driver, such as ``580.159.04``."""
        return self._text("nvmlSystemGetDriverVersion")

    def runtime(self) -> str:
        """The version of CUDA's driver interface, such as ``13.0``."""
        number = self._integer("nvmlSystemGetCudaDriverVersion_v2")
        return f"{number // 1000}.{number % 1000 // 10}"

    def count(self) -> int:
        """How many devices there are."""
        return self._integer("nvmlDeviceGetCount_v2")

    def numbered(self, index: int) -> ctypes.c_void_p:
        """The device with this index. Raises NvmlError when it is lost."""
        handle = ctypes.c_void_p()
        number = ctypes.c_uint(index)
        self._call("nvmlDeviceGetHandleByIndex_v2", number, ctypes.byref(handle))
        return handle

    def handle(self, uuid: str) -> ctypes.c_void_p:
        """The device called ``uuid``. Raises NvmlError when it is gone."""
        handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(handle))
        return handle

    def model(self, device: ctypes.c_void_p) -> str:
        """Such as ``NVIDIA H200``."""
        return self._text("nvmlDeviceGetName", device)

    def uuid(self, device: ctypes.c_void_p) -> str:
        """Such as ``GPU-4404041a-04cf-1ccf-9e70-f139a9b1e23c``."""
        return self._text("nvmlDeviceGetUUID", device)

    def minor(self, device: ctypes.c_void_p) -> int:
        """The number N of its ``/dev/nvidiaN``."""
        return self._integer("nvmlDeviceGetMinorNumber", device)

    def capability(self, device: ctypes.c_void_p) -> tuple[int, int]:
        """The compute capability: (9, 0) for ``sm_90``."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        references = ctypes.byref(major), ctypes.byref(minor)
        self._call("nvmlDeviceGetCudaComputeCapability", device, *references)
        return major.value, minor.value

    def memory(self, device: ctypes.c_void_p) -> int:
        """Bytes of device memory."""
        memory = _Memory()
        self._call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
        return int(memory.total)

    def max_clock(self, device: ctypes.c_void_p, clock: Clock) -> int:
        """The highest frequency of one clock, MHz."""
        return self._integer("nvmlDeviceGetMaxClockInfo", device, ctypes.c_int(clock))

    def application_clock(self, device: ctypes.c_void_p, clock: Clock) -> int:
        """The frequency of one clock that applications are set to, MHz."""
        return self._integer("nvmlDeviceGetApplicationsClock", device, ctypes.c_int(clock))

    def power_cap(self, device: ctypes.c_void_p) -> int:
        """The power limit that holds now, mW."""
        return self._integer("nvmlDeviceGetEnforcedPowerLimit", device)

    def compute_mode(self, device: ctypes.c_void_p) -> int:
        """0 if several processes may use it; ``nvmlComputeMode_t``."""
        return self._integer("nvmlDeviceGetComputeMode", device)

    def is_partitioned(self, device: ctypes.c_void_p) -> bool:
        """Whether MIG divides it."""
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        self._call("nvmlDeviceGetMigMode", device, ctypes.byref(current), ctypes.byref(pending))
        return bool(current.value)

    def processes(self, device: ctypes.c_void_p) -> tuple[int, ...]:
        """The processes that compute on it and that this one may know of."""
        count = ctypes.c_uint(_MOST_PROCESSES)
        found = (_Process * _MOST_PROCESSES)()
        function = "nvmlDeviceGetComputeRunningProcesses_v3"
        self._call(function, device, ctypes.byref(count), found)
        return tuple(sorted({int(found[index].pid) for index in range(count.value)}))

    def _text(self, function: str, *arguments: Any) -> str:
        buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        self._call(function, *arguments, buffer, ctypes.c_uint(_TEXT_BYTES))
        return buffer.value.decode(errors="replace")

    def _integer(self, function: str, *arguments: Any) -> int:
        number = ctypes.c_uint()
        self._call(function, *arguments, ctypes.byref(number))
        return number.value

    def _call(self, function: str, *arguments: Any) -> None:
        try:
            called = getattr(self._library, function)
        except AttributeError:
            missing = Status.FUNCTION_NOT_FOUND
            raise NvmlError(function, missing, "not in this driver") from None
        status = int(called(*arguments))
        if status != Status.SUCCESS:
            raise NvmlError(function, status, self._explain(status))

    def _explain(self, status: int) -> str:
        try:
            explain = self._library.nvmlErrorString
        except AttributeError:
            return f"error {status}"
        explain.restype = ctypes.c_char_p
        text = explain(ctypes.c_int(status))
        return text.decode(errors="replace") if text else f"error {status}"
