"""CUDA's driver interface, for containers that lack the management library."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kabuild.platform import Device, find_library

LIBRARY = "libcuda.so.1"
PLACES = (
    *("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib"),
    "/run/opengl-driver/lib",
)
"""Where containers, WSL and NixOS put the driver's libraries, which their loaders may not know."""

_CLOCK, _COMPUTE_MODE, _MEMORY_CLOCK, _MAJOR, _MINOR = 13, 20, 36, 75, 76
_DEFAULT_MODE = 0

_VISIBLE = "CUDA_VISIBLE_DEVICES"


class CudaError(Exception):
    """A function of the driver failed, or this driver has none of that name."""


def devices(proc: Path, path: str = "") -> tuple[tuple[Device, int], ...]:
    """Every device that CUDA offers to this process, with the number of its device file.

    ``proc`` is the driver's directory below ``/proc``; ``path`` replaces the library that is
    loaded. Raises CudaError, and OSError if there is no library.
    """
    if not path:
        library = find_library(LIBRARY, places=PLACES)
        path = library.path if library else LIBRARY
    driver = _Driver(path)
    minors = _minors(proc)
    found = []
    for number in range(driver.integer("cuDeviceGetCount")):
        device = _describe(driver, driver.integer("cuDeviceGet", ctypes.c_int(number)), proc)
        minor = minors.get(device.uuid, number)
        found.append((device, minor))
    return tuple(found)


class _Driver:
    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        with _all_visible():
            self.call("cuInit", ctypes.c_uint(0))

    def integer(self, function: str, *arguments: Any) -> int:
        number = ctypes.c_int()
        self.call(function, ctypes.byref(number), *arguments)
        return number.value

    def attribute(self, device: int, attribute: int) -> int:
        return self.integer("cuDeviceGetAttribute", ctypes.c_int(attribute), ctypes.c_int(device))

    def call(self, function: str, *arguments: Any) -> None:
        status = int(self._function(function)(*arguments))
        if status:
            text = ctypes.c_char_p()
            self._function("cuGetErrorString")(ctypes.c_int(status), ctypes.byref(text))
            raise CudaError(f"{function}: {(text.value or b'unknown').decode(errors='replace')}")

    def _function(self, name: str) -> Any:
        try:
            return getattr(self._library, name)
        except AttributeError:
            raise CudaError(f"{name}: not in this driver") from None


@contextmanager
def _all_visible() -> Iterator[None]:
    """CUDA would number only what the user's variable names; who may use what is decided later."""
    hidden = os.environ.pop(_VISIBLE, None)
    try:
        yield
    finally:
        if hidden is not None:
            os.environ[_VISIBLE] = hidden


def _describe(driver: _Driver, device: int, proc: Path) -> Device:
    name = ctypes.create_string_buffer(96)
    driver.call("cuDeviceGetName", name, ctypes.c_int(len(name)), ctypes.c_int(device))
    uuid = ctypes.create_string_buffer(16)
    driver.call("cuDeviceGetUuid_v2", uuid, ctypes.c_int(device))
    size = ctypes.c_size_t()
    driver.call("cuDeviceTotalMem_v2", ctypes.byref(size), ctypes.c_int(device))
    version = driver.integer("cuDriverGetVersion")
    sm, memory = driver.attribute(device, _CLOCK), driver.attribute(device, _MEMORY_CLOCK)
    properties = {
        "device": name.value.decode(errors="replace"),
        "memory": f"{size.value >> 20} MiB",
        "driver": _driver_version(proc),
        "runtime": f"{version // 1000}.{version % 1000 // 10}",
        "clocks": f"sm {sm // 1000} MHz, memory {memory // 1000} MHz",
    }
    alone = driver.attribute(device, _COMPUTE_MODE) != _DEFAULT_MODE
    return Device(
        platform="cuda",
        index=device,
        uuid=_uuid(uuid.raw),
        arch=f"sm_{driver.attribute(device, _MAJOR)}{driver.attribute(device, _MINOR)}",
        properties=tuple((key, value) for key, value in properties.items() if value),
        problem="its compute mode allows only one process" if alone else "",
    )


def _uuid(raw: bytes) -> str:
    text = raw.hex()
    parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
    return f"GPU-{'-'.join(parts)}"


def _driver_version(proc: Path) -> str:
    try:
        found = re.search(r"\b\d+\.\d+(\.\d+)?\b", (proc / "version").read_text(errors="replace"))
    except OSError:
        return ""
    return found[0] if found else ""


def _minors(proc: Path) -> dict[str, int]:
    """The numbers of device files by UUID."""
    minors = {}
    for file in sorted(proc.glob("gpus/*/information")):
        pairs = (line.partition(":") for line in file.read_text(errors="replace").splitlines())
        fields = {key.strip(): value.strip() for key, _, value in pairs}
        if fields.get("Device Minor", "").isdecimal():
            minors[fields.get("GPU UUID", "")] = int(fields["Device Minor"])
    return minors
