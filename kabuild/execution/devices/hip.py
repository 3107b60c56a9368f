"""AMD's HIP runtime, for those who ask what this machine can do.

Builds never load it: in their own process it would use the devices that they watch.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

from kabuild.execution.devices.libraries import Library, find_library

LIBRARIES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5")
_NO_DEVICE = 100


@dataclass(frozen=True)
class HipRuntime:
    """What the runtime says of itself.

    Attributes:
        version: such as ``6.3.42134``.
        devices: how many it sees.
        problem: why it sees none; empty where it sees some.
    """

    version: str
    devices: int
    problem: str = ""


def find_hip() -> Library | None:
    """The newest runtime that this machine has."""
    return next(filter(None, map(find_library, LIBRARIES)), None)


def file_version(library: Library) -> str:
    """The version in the name of its file, without loading it: ``6.3.60300``."""
    return Path(library.path).resolve().name.partition(".so.")[2]


def ask(library: Library) -> HipRuntime:
    """Load the runtime and ask. Raises OSError where that cannot be done."""
    try:
        return _answer(ctypes.CDLL(library.path))
    except AttributeError as error:  # a library without one of the functions, which names both
        raise OSError(str(error)) from None


def _answer(loaded: ctypes.CDLL) -> HipRuntime:
    version, count = ctypes.c_int(), ctypes.c_int()
    loaded.hipRuntimeGetVersion(ctypes.byref(version))
    status = int(loaded.hipGetDeviceCount(ctypes.byref(count)))
    number = version.value
    text = f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"
    if status == 0 and count.value:
        return HipRuntime(text, count.value)
    loaded.hipGetErrorString.restype = ctypes.c_char_p
    said = loaded.hipGetErrorString(ctypes.c_int(status or _NO_DEVICE))
    return HipRuntime(text, 0, said.decode(errors="replace"))
