"""Calls kernels, each once, in a process that a profiler watches.

    ncu ... python profiled.py CALLS

CALLS is a file of JSON: ``runtime``, the library that kernels need; ``data``, a file with what the
inputs hold; and ``calls``, of which each has ``library``, ``symbols`` (the first that there is
counts), ``inputs`` (offset and bytes in ``data``), ``outputs`` (bytes), ``scalars`` and ``dims``.
Every call has memory and a stream of its own, so that a profiler tells calls apart. Prints a line
of JSON for each: the hipError_t that it returned and the device's after it.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_TO_DEVICE = 1


class Device:
    """The current device, by the functions of CUDA's runtime or of HIP's. Raises RuntimeError."""

    def __init__(self, runtime: str, data: bytes) -> None:
        self._runtime = ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
        self._prefix = "cuda" if hasattr(self._runtime, "cudaMalloc") else "hip"
        self._data = data

    def _do(self, name: str, *arguments: Any) -> None:
        error = getattr(self._runtime, self._prefix + name)(*arguments)
        if error:
            raise RuntimeError(f"{self._prefix}{name}: error {error}")

    def memory(self, size: int) -> ctypes.c_void_p:
        """Zeros, in an allocation of their own."""
        pointer = ctypes.c_void_p()
        self._do("Malloc", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self._copy(pointer, bytes(size))
        return pointer

    def tensor(self, offset: int, size: int) -> ctypes.c_void_p:
        """What stands in the data."""
        pointer = self.memory(size)
        self._copy(pointer, self._data[offset : offset + size])
        return pointer

    def _copy(self, pointer: ctypes.c_void_p, content: bytes) -> None:
        size = ctypes.c_size_t(len(content))
        self._do("Memcpy", pointer, content, size, ctypes.c_int(_TO_DEVICE))

    def stream(self) -> ctypes.c_void_p:
        """A new one."""
        stream = ctypes.c_void_p()
        self._do("StreamCreate", ctypes.byref(stream))
        return stream

    def wait(self) -> int:
        """Until it is idle; the error that there was, or 0."""
        return int(getattr(self._runtime, f"{self._prefix}DeviceSynchronize")())


def call(device: Device, wanted: Mapping[str, Any]) -> dict[str, int]:
    """Make one call; what it returned, and the device's error after it."""
    library = ctypes.CDLL(wanted["library"])
    symbol = next(name for name in wanted["symbols"] if hasattr(library, name))
    dims = [ctypes.c_int64(dim) for dim in wanted["dims"]]
    tensors = [device.tensor(*place) for place in wanted["inputs"]]
    tensors += [device.memory(size) for size in wanted["outputs"]]
    workspace = []
    if hasattr(library, f"{symbol}_workspace"):
        size_of = getattr(library, f"{symbol}_workspace")
        size_of.restype = ctypes.c_size_t
        workspace = [device.memory(size_of(*dims))]
    scalars = [_scalar(value) for value in wanted["scalars"]]
    function = getattr(library, symbol)
    returned = function(*tensors, *scalars, *dims, *workspace, device.stream())
    return {"returned": int(returned), "device": device.wait()}


def _scalar(value: float) -> ctypes.c_float | ctypes.c_int64:
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int64(value)


def main(arguments: Sequence[str]) -> None:
    """Make all calls."""
    wanted = json.loads(Path(arguments[0]).read_bytes())
    device = Device(wanted["runtime"], Path(wanted["data"]).read_bytes())
    for one in wanted["calls"]:
        print(json.dumps(call(device, one)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
